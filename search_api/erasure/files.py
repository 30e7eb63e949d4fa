"""How many files of some documents stand in their vaults, set aside ones too. Blocking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import DocumentKey
from indexers.errors import VaultUnavailable
from indexers.vault.tree import VaultTree
from search_api.problems import ProblemError, unavailable

_AWAY: Final = (
    "The vault is away, so nobody can say what is left in it. What was accepted is carried out once it is back: send "
    "it again then, that does no harm."
)

_UNSEEN: Final = (
    "The query service doesn't see the document's vault (HOPLINE_VAULTS, HOPLINE_MEMORIES__FOLDER), so it can't say "
    "whether its file is gone."
)


@dataclass(frozen=True, slots=True)
class FileCount:
    """Raises ProblemError (503) where a vault is away: what isn't seen isn't gone."""

    vaults: VaultTree

    def __call__(self, documents: Sequence[DocumentKey]) -> int:
        try:
            return sum(self._of(document) for document in documents)
        except (VaultUnavailable, OSError) as fault:
            raise ProblemError(unavailable("vault-unavailable", _AWAY)) from fault

    def _of(self, document: DocumentKey) -> int:
        files = self.vaults.get(document.namespace)
        if files is None:
            raise ProblemError(unavailable("vault-unavailable", _UNSEEN))
        try:
            files.entry(document.path)
        except FileNotFoundError:
            return files.set_aside_copies(document.path)
        except (PermissionError, ValueError):
            pass  # it can't be read, or leads out of the vault: it stands there all the same
        return 1 + files.set_aside_copies(document.path)
