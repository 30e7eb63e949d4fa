"""Whether files are gone, looked at just before they are deleted. Blocking."""

from __future__ import annotations

from collections.abc import Iterable

from indexers.errors import VaultUnavailable
from indexers.ports import VaultFiles


def is_gone(files: VaultFiles, path: str) -> bool:
    try:
        files.entry(path)
    except (FileNotFoundError, ValueError):
        return True
    except OSError:
        return False  # it may well be there
    return False


def still_gone(files: VaultFiles, paths: Iterable[str], *, root: str, identity: str) -> list[str]:
    """A second look; a root that was replaced since the first (`identity`) proves nothing."""
    gone = [path for path in paths if is_gone(files, path)]
    if gone and files.root_identity() != identity:
        msg = f"the vault {root} was replaced while it was read"
        raise VaultUnavailable(msg)
    return gone
