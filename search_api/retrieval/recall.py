"""The fan-out: one `_msearch` for both parts; later the rows of a page that only a vector found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from msgspec.structs import replace

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, RowRef, SearchHit
from indexers.opensearch.rows import Index
from search_api.models import Part
from search_api.requests import SearchFilters
from search_api.retrieval.candidates import (
    VIEW_FIELDS,
    Candidate,
    ChunkHit,
    DocumentHit,
    DocumentView,
    Evidence,
    FoundChunk,
)
from search_api.retrieval.queries import (
    keyword_body,
    matching_ids_body,
    needs_documents,
    vector_body,
    which_of_body,
)
from search_api.retrieval.stages import is_stood_by

log = structlog.get_logger()

#: How the vector part got filtered: by nothing but scope, by the ids of all that pass, or afterwards.
FilterMode = Literal["none", "ids", "afterwards"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """Documents that pass the filters, as far as the vector part needs to know them."""

    mode: FilterMode
    doc_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """One candidate per row found; `allowed` as in `Ranking`."""

    candidates: list[Candidate]
    keyword_hits: int
    vector_hits: int
    allowed: frozenset[str] | None


class Recall:
    def __init__(self, gate: Gate, *, depth: int, filter_ids_max: int) -> None:
        self._gate = gate
        self._depth = depth
        self._filter_ids_max = filter_ids_max

    async def passing(self, principal: Principal, parts: Sequence[Part], filters: SearchFilters) -> Passing:
        """Chunk rows don't know tags and paths: few documents that pass are named inside the k-NN clause."""
        if "vector" not in parts or not needs_documents(filters):
            return Passing(mode="none")
        body = matching_ids_body(filters, size=self._filter_ids_max)
        [page] = await self._gate.search_many([_on_documents(principal, body)])
        if page.total > self._filter_ids_max:
            return Passing(mode="afterwards")
        return Passing(mode="ids", doc_ids=tuple(hit.row_id for hit in page.hits))

    async def recall(
        self,
        principal: Principal,
        query: str,
        filters: SearchFilters,
        *,
        keyword: bool,
        vector: Sequence[float] | None,
        passing: Passing,
    ) -> Recalled:
        searches: dict[Part, GatedSearch] = {}
        if keyword:
            body = keyword_body(query, filters, size=self._depth)
            searches["keyword"] = GatedSearch(
                principal=principal, index=Index.DOCUMENTS, body=body, hit=DocumentHit
            )
        if vector is not None and passing.doc_ids != ():
            body = vector_body(vector, filters, size=self._depth, doc_ids=passing.doc_ids)
            searches["vector"] = GatedSearch(principal=principal, index=Index.CHUNKS, body=body, hit=ChunkHit)
        pages = dict(zip(searches, await self._gate.search_many(list(searches.values())), strict=True))
        by_words = [_keyword_candidate(hit) for hit in (pages["keyword"].hits if "keyword" in pages else ())]
        chunks = pages["vector"].hits if "vector" in pages else []
        documents = {c.doc_id: c.document for c in by_words if c.document is not None}
        candidates = by_words + [_vector_candidate(hit, documents) for hit in chunks]
        allowed: frozenset[str] | None = None
        if passing.mode == "afterwards":
            allowed = await self._allowed(principal, list({c.doc_id for c in candidates}), filters)
        return Recalled(
            candidates=candidates, keyword_hits=len(by_words), vector_hits=len(chunks), allowed=allowed
        )

    async def stood_by(self, principal: Principal, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Those whose document stands as their evidence says, with its row as last written.

        Only what a page shows is looked up: a document that no word found has no evidence but its chunks, so
        dropping it here changes no other hit's score.
        """
        missing = [candidate.doc_id for candidate in ranked if candidate.document is None]
        refs = [RowRef(principal=principal, row_id=doc_id) for doc_id in missing]
        rows = await self._gate.get_many(Index.DOCUMENTS, refs, fields=VIEW_FIELDS) if refs else []
        found = {row.row_id: DocumentView.from_source(row.source) for row in rows if row is not None}
        complete = (c if c.document else replace(c, document=found.get(c.doc_id)) for c in ranked)
        return [candidate for candidate in complete if is_stood_by(candidate)]

    async def _allowed(
        self, principal: Principal, doc_ids: list[str], filters: SearchFilters
    ) -> frozenset[str]:
        if not doc_ids:
            return frozenset()
        [page] = await self._gate.search_many([_on_documents(principal, which_of_body(doc_ids, filters))])
        return frozenset(hit.row_id for hit in page.hits)


def _on_documents(principal: Principal, body: dict[str, Any]) -> GatedSearch:
    return GatedSearch(principal=principal, index=Index.DOCUMENTS, body=body)


def _keyword_candidate(hit: SearchHit) -> Candidate:
    document: DocumentView = hit.source
    raw = _finite(hit)
    evidence = Evidence(part="keyword", raw=raw, normalised=raw, version=document.version)
    return Candidate(doc_id=document.doc_id, document=document, evidence=(evidence,))


def _vector_candidate(hit: SearchHit, documents: dict[str, DocumentView]) -> Candidate:
    chunk: FoundChunk = hit.source
    # The engine's score of a cosine is (1 + cosine) / 2.
    raw = 2 * _finite(hit) - 1
    evidence = Evidence(part="vector", raw=raw, normalised=raw, version=chunk.version, span=chunk)
    return Candidate(doc_id=chunk.doc_id, document=documents.get(chunk.doc_id), evidence=(evidence,))


def _finite(hit: SearchHit) -> float:
    """A score that is none counts as the lowest, with a warning."""
    if hit.score is None or not math.isfinite(hit.score):
        log.warning("search.score_refused", row_id=hit.row_id)
        return 0.0
    return hit.score
