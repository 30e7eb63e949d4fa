"""From a request to ranked candidates and the page of them: recall, fusion, look-up, factors, order.

What a page shows never decides a score. Rows are looked up for candidates that only names (or the graph) brought,
the best few of them whatever the page, and for what a page shows; both in one request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from search_api.cursor import SearchPosition
from search_api.metrics import ApiMetrics
from search_api.ranking_settings import RankingRules
from search_api.requests import SearchRequest
from search_api.retrieval.candidates import VIEW_FIELDS, Candidate, DocumentView, Ranking
from search_api.retrieval.filtering import passes
from search_api.retrieval.legs import Asked, list_weights
from search_api.retrieval.query_vectors import QueryVectors
from search_api.retrieval.recall import Passing, Recall, Recalled
from search_api.retrieval.router import Names, Route, names_in, route
from search_api.retrieval.stages import (
    FUSION,
    ORDER,
    StageRecord,
    behind,
    is_stood_by,
    joined,
    rank,
    run_stages,
)
from search_api.retrieval.steps import Steps


@dataclass(slots=True, kw_only=True)
class Found:
    """What one request found, before its page is cut."""

    principal: Principal
    request: SearchRequest
    ranking: Ranking
    passing: Passing
    recalled: Recalled
    #: Whether the query's vector was known; None without the vector part.
    cached: bool | None
    steps: Steps
    #: Ranked: those whose facts are known.
    known: list[Candidate]
    #: Those that need a row first, best first.
    unknown: list[Candidate]
    #: Stages before the look-up, and behind it.
    before: list[StageRecord]
    order: list[StageRecord]
    #: Rows that were looked up; None: gone, or hidden from the asker.
    rows: dict[str, DocumentView | None] = field(default_factory=dict)
    looked_up: StageRecord | None = None

    @property
    def records(self) -> list[StageRecord]:
        return [*self.before, *([self.looked_up] if self.looked_up else []), *self.order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    shown: list[Candidate]
    #: The last one shown, where more follow.
    last: Candidate | None
    #: All of them, in order.
    ranked: list[Candidate]
    #: Whether it is the first.
    first: bool


class Retrieval:
    def __init__(
        self,
        gate: Gate,
        *,
        recall: Recall,
        vectors: QueryVectors,
        source_ranks: Mapping[str, int],
        metrics: ApiMetrics,
    ) -> None:
        self._gate = gate
        self._recall = recall
        self._vectors = vectors
        self._source_ranks = source_ranks
        self._metrics = metrics

    @property
    def model_id(self) -> str:
        return self._vectors.embedder.model_id

    async def find(
        self, principal: Principal, request: SearchRequest, rules: RankingRules, now: datetime
    ) -> Found:
        steps = Steps(self._metrics)
        parts = frozenset(request.parts)
        weights = list_weights(rules, parts)
        with steps.timed("filter"):
            passing = await self._recall.passing(principal, request.parts, request.filters)
            steps.round_trips += passing.mode != "none"
        wants_vector = any(part == "vector" and weight for (_, part), weight in weights.items())
        vector, cached = await self._vector(principal, request, steps) if wants_vector else (None, None)
        asked = Asked(
            query=request.query,
            route=route(request.query, now) if "route" not in rules.stages_off else Route(now=now),
            names=names_in(request.query) if {"names", "graph"} & parts else Names(),
            filters=request.filters,
            parts=parts,
            vector=vector,
            rules=rules,
        )
        with steps.timed("recall"):
            recalled = await self._recall.recall(principal, asked, passing)
            steps.round_trips += recalled.round_trips
        ranking = Ranking(
            rules=rules,
            weights=weights,
            cosine_floor=self._vectors.embedder.cosine_floor,
            source_ranks=self._source_ranks,
            route=asked.route,
            allowed=recalled.allowed,
        )
        fused, records = run_stages(recalled.candidates, ranking, FUSION)
        unknown = rank([c for c in fused if c.facts is None], ranking)
        known, ordered = run_stages([c for c in fused if c.facts is not None], ranking, ORDER)
        return Found(
            principal=principal,
            request=request,
            ranking=ranking,
            passing=passing,
            recalled=recalled,
            cached=cached,
            steps=steps,
            known=known,
            unknown=unknown[: rules.graph.added_max],
            before=records,
            order=ordered,
        )

    async def page(self, found: Found, after: SearchPosition | None, size: int) -> Page:
        """`size` hits that stand as their evidence says, behind a position; passed-over ones are made up for."""
        with found.steps.timed("look_up"):
            ranked = await self._complete(found, after, size)
            rest = behind(ranked, after)
            shown: list[Candidate] = []
            done = 0
            while len(shown) <= size and done < len(rest):
                batch = rest[done : done + size + 1 - len(shown)]
                done += len(batch)
                await self._look_up(found, [c.doc_id for c in batch if c.document is None])
                complete = (c if c.document else replace(c, document=found.rows[c.doc_id]) for c in batch)
                shown += [c for c in complete if is_stood_by(c)]
        more = len(shown) > size
        return Page(
            shown=shown[:size], last=shown[size - 1] if more else None, ranked=ranked, first=after is None
        )

    async def _complete(self, found: Found, after: SearchPosition | None, size: int) -> list[Candidate]:
        """All candidates in order. Those without facts get their rows, together with what the page may show."""
        if not found.unknown:
            return found.known
        near = [c.doc_id for c in behind(found.known, after)[: size + 1] if c.document is None]
        await self._look_up(found, [*near, *(c.doc_id for c in found.unknown)])
        filters = found.request.filters
        rows = ((c, found.rows[c.doc_id]) for c in found.unknown)
        standing = [
            with_row
            for c, row in rows
            if row is not None
            and is_stood_by(with_row := replace(c, document=row, facts=row))
            and passes(filters, row)
        ]
        ordered, records = run_stages(standing, found.ranking, ORDER)
        found.order = joined(found.order, records)
        count = len(found.known)
        found.looked_up = StageRecord(
            stage="look_up",
            on=True,
            candidates_in=count + len(found.unknown),
            candidates_out=count + len(standing),
            ms=0.0,
        )
        return rank([*found.known, *ordered], found.ranking)

    async def _look_up(self, found: Found, doc_ids: Sequence[str]) -> None:
        """Rows as last written, of those not looked up yet."""
        wanted = [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id not in found.rows]
        if not wanted:
            return
        refs = [RowRef(principal=found.principal, row_id=doc_id) for doc_id in wanted]
        found.steps.round_trips += 1
        rows = await self._gate.get_many(Index.DOCUMENTS, refs, fields=VIEW_FIELDS)
        for doc_id, row in zip(wanted, rows, strict=True):
            found.rows[doc_id] = None if row is None else DocumentView.from_source(row.source)

    async def _vector(
        self, principal: Principal, request: SearchRequest, steps: Steps
    ) -> tuple[list[float], bool]:
        """The query's vector and whether it was known."""
        with steps.timed("embed"):
            made, cached = await self._vectors.vector(principal, request.query)
        self._metrics.query_cache.labels(outcome="hit" if cached else "miss").inc()
        vector: list[float] = made.tolist()
        return vector, cached
