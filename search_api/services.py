"""What the routes call, made once a process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import AgentId, Principal, TenantId
from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.gate import Gate, GatedSearch
from indexers.opensearch.rows import Index
from search_api.context.service import ContextService
from search_api.documents import Documents
from search_api.documents_graph import DocumentGraph
from search_api.entities.curating import Curation
from search_api.entities.labelling import Labelling
from search_api.entities.reading import Entities
from search_api.entities.walking import Walks
from search_api.erasure.following import OpenErasures
from search_api.erasure.service import Erasures
from search_api.identity.audit import Audit
from search_api.identity.wiring import IdentityParts
from search_api.memories.writing import Memories
from search_api.metrics import ApiMetrics
from search_api.quotas import Quotas
from search_api.retrieval.service import SearchService
from search_api.retrieval.spaces import GenerationSpaces
from search_api.settings import SearchSettings
from streams.tracing import OFF, Tracing

_READY_SECONDS: Final = 3.0
#: Owns nothing: what it asks for matches no row.
_PROBE: Final = Principal(tenant_id=TenantId("readiness"), agent_id=AgentId("readiness"))


class Readiness:
    """Whether a search would be answered."""

    def __init__(self, gate: Gate, spaces: GenerationSpaces) -> None:
        self._gate = gate
        self._spaces = spaces

    async def checks(self) -> dict[str, str]:
        """Name of the check → `ok`, or what is wrong."""
        try:
            async with asyncio.timeout(_READY_SECONDS):
                body = {"query": {"match_none": {}}, "size": 0}
                indices = (Index.DOCUMENTS, Index.CHUNKS, Index.LINKS)
                probes = [GatedSearch(principal=_PROBE, index=index, body=body) for index in indices]
                await self._gate.search_many(probes)
                known = await self._spaces.look()
        except TimeoutError:
            return {"store": "OpenSearch did not answer in time"}
        except (Transient, RefusedRequest):
            return {"store": "OpenSearch is away, or its indices aren't made yet"}
        space = None if known.live is None else known.live.space
        if space is not None and space.pair_id != self._spaces.now.embedder.pair_id:
            return {
                "store": "ok",
                "model": self._spaces.problem or f"the index holds vectors of {space.pair_id}",
            }
        return {"store": "ok", "model": "ok"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    search: SearchService
    context: ContextService
    documents: Documents
    graph: DocumentGraph
    entities: Entities
    walks: Walks
    curation: Curation
    labelling: Labelling
    erasures: Erasures
    open_erasures: OpenErasures
    quotas: Quotas
    memories: Memories
    identity: IdentityParts
    readiness: Readiness
    spaces: GenerationSpaces
    settings: SearchSettings
    metrics: ApiMetrics
    tracing: Tracing = OFF

    @property
    def audit(self) -> Audit:
        return self.identity.audit
