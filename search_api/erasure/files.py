"""Files of documents in their vaults, set aside ones too: by path before an erasure, by id after it. Blocking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import DocumentKey, Namespace, TenantId
from indexers.erasures import ErasedDocument
from indexers.errors import VaultUnavailable
from indexers.opensearch.rows import owner_of
from indexers.ports import VaultFiles
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
    """Raises ProblemError (503) where a vault is away, or isn't seen from here: what isn't seen isn't gone."""

    vaults: VaultTree

    def of(self, documents: Sequence[DocumentKey]) -> int:
        with _seen():
            return sum(self._at(document) for document in documents)

    def left(self, tenant_id: TenantId, documents: Sequence[ErasedDocument]) -> int:
        """Nobody knows their paths any more, so each path of their vaults is looked at, whose id it gives."""
        by_namespace: defaultdict[Namespace, set[str]] = defaultdict(set)
        for document in documents:
            owner = {"agent_id": document.agent_id, "team_id": document.team_id, "scope": document.scope}
            by_namespace[owner_of(tenant_id, owner)].add(document.doc_id)
        with _seen():
            return sum(
                sum(namespace.document(path).doc_id in doc_ids for path in _paths(self._files(namespace)))
                for namespace, doc_ids in by_namespace.items()
            )

    def set_aside(self, tenant_id: TenantId, agent: str | None) -> list[DocumentKey]:
        """Forgotten notes of a tenant, or of one agent of it, whose rows may be gone by now."""
        with _seen():
            roots = [r for r in self.vaults.all_roots if r.tenant == tenant_id and agent in (None, r.agent)]
            return [
                root.namespace.document(path)
                for root in roots
                for path in self._files(root.namespace).set_aside_paths()
            ]

    def _at(self, document: DocumentKey) -> int:
        files = self._files(document.namespace)
        try:
            files.entry(document.path)
        except FileNotFoundError:
            return files.set_aside_copies(document.path)
        except (PermissionError, ValueError):
            pass  # it can't be read, or leads out of the vault: it stands there all the same
        return 1 + files.set_aside_copies(document.path)

    def _files(self, namespace: Namespace) -> VaultFiles:
        files = self.vaults.get(namespace)
        if files is None:
            raise ProblemError(unavailable("vault-unavailable", _UNSEEN))
        return files


def _paths(files: VaultFiles) -> Iterator[str]:
    yield from (entry.path for entry in files.entries())
    yield from files.set_aside_paths()


@contextmanager
def _seen() -> Iterator[None]:
    try:
        yield
    except (VaultUnavailable, OSError) as fault:
        raise ProblemError(unavailable("vault-unavailable", _AWAY)) from fault
