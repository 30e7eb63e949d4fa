"""The mass-removal guard: a vault that suddenly lost much is more often unmounted than deleted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HoldReason = Literal["empty_vault", "mass_removal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalGuard:
    """Decides whether removals wait for `hopline rescan --confirm-removals`."""

    ratio: float
    minimum: int

    def hold(self, *, removed: int, known: int, vault_is_empty: bool) -> HoldReason | None:
        """`removed` of `known` files are gone (moved ones don't count); None: delete them.

        `vault_is_empty` is said by scans only: there an empty folder is what a failed mount looks like. A
        live event tells of each file, on a root that is the same as before: the last note may be deleted.
        """
        if removed == 0:
            return None
        if vault_is_empty:
            return "empty_vault"
        return "mass_removal" if removed >= self.minimum and removed >= self.ratio * known else None
