"""What the index knows of a root's namespace: the other half of every scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from indexers.domain.identity import Namespace
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index


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
            owned_by(namespace),
            fields=("path", "content_hash", "version"),
        )
        return {
            row.source["path"]: KnownDocument(
                content_hash=row.source["content_hash"], version=row.source["version"]
            )
            async for row in rows
        }


def owned_by(namespace: Namespace, *, deleted: bool = False) -> dict[str, Any]:
    """Documents that this root writes: the principal may see more (the whole tenant's shared ones)."""
    terms: list[dict[str, Any]] = [
        {"term": {"agent_id": namespace.agent_id}},
        {"term": {"scope": namespace.scope.value}},
        {"term": {"deleted": deleted}},
    ]
    if namespace.team_id is not None:
        terms.append({"term": {"team_id": namespace.team_id}})
    return {"bool": {"filter": terms}}
