"""What the index knows of a root's namespace: the other half of every scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from indexers.domain.identity import Namespace
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import owned_by


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDocument:
    content_hash: str
    version: int


class KnownDocuments(Protocol):
    async def of(self, namespace: Namespace) -> dict[str, KnownDocument]:
        """Living documents by path. Raises `Transient` while the index is away."""
        ...


class IndexedDocuments:
    """The index, through the gate, as the root's own principal."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def of(self, namespace: Namespace) -> dict[str, KnownDocument]:
        # What ingest wrote a moment ago would otherwise be missed, and its deletion with it.
        await self._gate.refresh(Index.DOCUMENTS)
        rows = self._gate.scan(
            namespace.principal,
            Index.DOCUMENTS,
            owned_by(namespace, deleted=False),
            fields=("path", "content_hash", "version"),
        )
        return {
            row.source["path"]: KnownDocument(
                content_hash=row.source["content_hash"], version=row.source["version"]
            )
            async for row in rows
        }
