"""From a request to what was found: route, recall, fusion, graph, and the order of what is known by then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from indexers.domain.identity import Principal
from indexers.errors import Transient
from indexers.opensearch.gate import Gate
from indexers.ports import Vectors
from search_api.graph.fetch import GraphReader
from search_api.graph.standing import standing
from search_api.metrics import ApiMetrics
from search_api.ranking_settings import RankingRules
from search_api.requests import SearchRequest
from search_api.retrieval.candidates import Candidate, LegPart, Ranking
from search_api.retrieval.found import Found
from search_api.retrieval.graphing import (
    GraphRun,
    best_new,
    brought_in,
    graph_rules,
    part_weights,
    run_parts,
    seeds_of,
    unit_of,
    with_graph,
)
from search_api.retrieval.legs import Asked, list_weights
from search_api.retrieval.look_up import LookUp
from search_api.retrieval.queries import fit_words, language_of, telling_words
from search_api.retrieval.recall import Passing, Prepared, Recalled
from search_api.retrieval.router import Names, Route, names_in, route
from search_api.retrieval.spaces import QuerySpace, Spaces
from search_api.retrieval.stages import FUSION, ORDER, rank, run_stages
from search_api.retrieval.steps import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A search whose vector is being made."""

    principal: Principal
    request: SearchRequest
    rules: RankingRules
    weights: Mapping[LegPart, float]
    #: Which vectors are asked, and whose model makes the query's.
    space: QuerySpace
    #: None: not asked for.
    vector: asyncio.Future[Vectors] | None
    #: Whether it was known; None without one.
    cached: bool | None

    def give_up(self) -> None:
        """Where the model isn't at it yet, it won't be."""
        if self.vector is not None:
            self.vector.cancel()


class Retrieval:
    def __init__(
        self,
        gate: Gate,
        *,
        spaces: Spaces,
        source_ranks: Mapping[str, int],
        metrics: ApiMetrics,
    ) -> None:
        self._gate = gate
        self._spaces = spaces
        self._graph = GraphReader(gate)
        self._source_ranks = source_ranks
        self._metrics = metrics

    def begin(self, principal: Principal, request: SearchRequest, rules: RankingRules) -> Begun:
        """The query's vector is made from here on, whatever is done meanwhile."""
        weights = list_weights(rules, frozenset(request.parts))
        wants_vector = any(part == "vector" and share for (_, part), share in weights.items())
        space = self._spaces.now
        vector, cached = self._vector(space, principal, request) if wants_vector else (None, None)
        return Begun(
            principal=principal,
            request=request,
            rules=rules,
            weights=weights,
            space=space,
            vector=vector,
            cached=cached,
        )

    async def find(self, begun: Begun, now: datetime) -> Found:
        principal, request, rules, weights = begun.principal, begun.request, begun.rules, begun.weights
        steps = Steps(self._metrics)
        try:
            begun = await self._settled(begun)
            with steps.timed("filter"):
                passing = await begun.space.recall.passing(principal, request.parts, request.filters)
        except BaseException:
            # Nobody waits for the vector any more: others' needn't queue behind it.
            begun.give_up()
            raise
        steps.round_trips += passing.mode != "none"
        # Read while the vector is made: the model leaves the interpreter to others.
        asked = _asked(request, rules, now)
        prepared = begun.space.recall.prepare(principal, asked, passing)
        recalled = await self._recalled(begun, asked, passing, prepared, steps)
        steps.round_trips += recalled.round_trips
        ranking = self._ranking(weights, asked, recalled, begun.space.embedder.cosine_floor)
        fused, before = run_stages(recalled.candidates, ranking, FUSION)
        unit = unit_of(weights)
        run = await self._walk(principal, request, rules, unit, fused, recalled, steps)
        every = fused if run is None else _with_new(run, fused, recalled, rules.graph.added_max)
        known, order = run_stages([c for c in every if c.facts is not None], ranking, ORDER)
        unknown = rank([c for c in every if c.facts is None], ranking)
        return Found(
            principal=principal,
            request=request,
            ranking=ranking,
            passing=passing,
            recalled=recalled,
            model_id=begun.space.embedder.model_id,
            cached=begun.cached,
            steps=steps,
            look_up=LookUp(self._gate, principal, steps),
            fused=fused,
            graph=run,
            known=known,
            unknown=unknown[: rules.graph.added_max],
            before=before if run is None else [*before, *run.records],
            order=order,
        )

    async def _settled(self, begun: Begun) -> Begun:
        """One that began before the store was looked at begins anew; a swap since then changes nothing for it."""
        if begun.space.is_settled:
            return begun
        space = await self._spaces.settled()
        if not space.is_settled:
            msg = "no generation of chunks can be asked here yet"
            raise Transient(msg)
        begun.give_up()
        return self.begin(begun.principal, begun.request, begun.rules)

    async def _recalled(
        self, begun: Begun, asked: Asked, passing: Passing, prepared: Prepared, steps: Steps
    ) -> Recalled:
        recall = begun.space.recall
        if begun.vector is None or begun.vector.done():
            with steps.timed("embed"):
                vector = None if begun.vector is None else begun.vector.result().tolist()
            with steps.timed("recall"):
                return await recall.recall(begun.principal, asked, passing, prepared, vector)
        async with recall.ahead(prepared) as words:
            with steps.timed("embed"):
                vector = (await begun.vector).tolist()
            with steps.timed("recall"):
                return await recall.recall(begun.principal, asked, passing, words, vector)

    def _ranking(
        self, weights: Mapping[LegPart, float], asked: Asked, recalled: Recalled, cosine_floor: float
    ) -> Ranking:
        words = telling_words(fit_words(asked.query).text)
        return Ranking(
            rules=asked.rules,
            weights=weights,
            cosine_floor=cosine_floor,
            source_ranks=self._source_ranks,
            route=asked.route,
            words=len(words),
            language=language_of(words),
            allowed=recalled.allowed,
        )

    async def _walk(
        self,
        principal: Principal,
        request: SearchRequest,
        rules: RankingRules,
        unit: float,
        fused: Sequence[Candidate],
        recalled: Recalled,
        steps: Steps,
    ) -> GraphRun | None:
        """What the graph says of the fused candidates; None where it isn't asked for."""
        weights = part_weights(rules) if "graph" in request.parts else {}
        if not weights:
            return None
        seeds, own = seeds_of(fused, recalled, unit), graph_rules(rules, weights)
        with steps.timed("graph"):
            read = await self._graph.expand(principal, seeds, own)
            steps.round_trips += read.round_trips
            for cap, count in read.truncated.items():
                self._metrics.graph_truncated.labels(cap=cap).inc(count)
            # A chunk tells the version of its document: no edge of another one is walked.
            versions = {c.doc_id: e.version for c in fused for e in c.evidence if e.version}
            run = GraphRun(
                subgraph=standing(read, versions), seeds=seeds, rules=own, asked=weights, unit=unit
            )
            return run_parts(run, fused)

    def _vector(
        self, space: QuerySpace, principal: Principal, request: SearchRequest
    ) -> tuple[asyncio.Future[Vectors], bool]:
        """The query's vector, begun, and whether it was known."""
        making, cached = space.vectors.begin(principal, request.query)
        self._metrics.query_cache.labels(outcome="hit" if cached else "miss").inc()
        return making, cached


def _asked(request: SearchRequest, rules: RankingRules, now: datetime) -> Asked:
    parts = frozenset(request.parts)
    return Asked(
        query=request.query,
        route=Route(now=now) if "route" in rules.stages_off else route(request.query, now),
        names=names_in(request.query) if {"names", "graph"} & parts else Names(),
        filters=request.filters,
        parts=parts,
        rules=rules,
    )


def _with_new(
    run: GraphRun, fused: Sequence[Candidate], recalled: Recalled, added_max: int
) -> list[Candidate]:
    new = brought_in(run, best_new(run, fused, added_max), recalled.views)
    return [*with_graph(run, fused), *new]
