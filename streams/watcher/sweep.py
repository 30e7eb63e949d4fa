"""What processes that were killed while they wrote left in a vault goes with the next look at all of it. Blocking."""

from __future__ import annotations

import contextlib
from typing import Final

from indexers.ports import VaultFiles, VaultListing

#: No write takes as long.
LEFTOVER_SECONDS: Final = 600.0


def listed_and_swept(files: VaultFiles) -> VaultListing:
    """Raises as `listing` does. A vault that may not be written keeps what it has."""
    listing = files.listing()
    for folder in listing.leftovers:
        with contextlib.suppress(OSError):
            files.remove_leftovers(folder, older_seconds=LEFTOVER_SECONDS)
    return listing
