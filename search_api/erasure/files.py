"""How many files of some documents stand in their vaults, set aside ones too. Blocking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexers.domain.identity import DocumentKey
from indexers.vault.tree import VaultTree


@dataclass(frozen=True, slots=True)
class FileCount:
    """Raises VaultUnavailable where a vault is away: what isn't seen isn't gone."""

    vaults: VaultTree

    def __call__(self, documents: Sequence[DocumentKey]) -> int:
        return sum(self._of(document) for document in documents)

    def _of(self, document: DocumentKey) -> int:
        files = self.vaults.get(document.namespace)
        if files is None:
            return 0
        try:
            files.entry(document.path)
        except FileNotFoundError:
            return files.set_aside_copies(document.path)
        return 1 + files.set_aside_copies(document.path)
