"""The graph stages: seeds of the fused candidates, each part's evidence, and which new documents are kept. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from heapq import nsmallest
from typing import Final

from indexers.domain import scores
from search_api.graph.entity_hops import entity_hops
from search_api.graph.forward_hop import forward_hop, shares_of
from search_api.graph.kinds import GRAPH_PARTS, GraphPart
from search_api.graph.model import Reached, SeedRow, Seeds, Subgraph
from search_api.graph.named import named
from search_api.graph.neighbours import neighbours
from search_api.graph.pagerank import mass_scale, pagerank
from search_api.graph.rules import GraphRules
from search_api.graph.session import session
from search_api.graph.session_mates import session_mates
from search_api.graph.standing import standing
from search_api.graph.walk import walk
from search_api.ranking_settings import RankingRules
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, LegPart
from search_api.retrieval.naming import name_seeds
from search_api.retrieval.recall import Recalled
from search_api.retrieval.smoothing import session_of
from search_api.retrieval.stages import StageRecord, with_evidence

#: Names of the rules that brought a value to 0..1.
VALUE_RULE: Final = "min(1,value)"
MASS_RULE: Final = "mass/max(heaviest,floor^2/heaviest)"
HOP_RULE: Final = "value-own share"
#: Of all that the recall scores and the graph's parts so far give.
_Totals = dict[str, float]
_PARTS: Final[Mapping[GraphPart, Callable[[Subgraph, Seeds, GraphRules], list[Reached]]]] = {
    "named": named,
    "walk": walk,
    "entities": entity_hops,
    "neighbours": neighbours,
    "session": session,
    "session_mates": session_mates,
    "pagerank": pagerank,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRun:
    """What the parts that are on have reached, by part and document."""

    subgraph: Subgraph
    seeds: Seeds
    rules: GraphRules
    #: As the settings say them: beside a documents leg whose share is 1.
    asked: Mapping[GraphPart, float]
    #: Share of the documents leg: what the graph says weighs as much as what the leg says, whatever other legs do.
    unit: float
    #: What the values count: the settings' times the unit; of `hop` times the best total too.
    weights: Mapping[GraphPart, float] = field(default_factory=dict)
    #: What documents had before `hop`, as shares of the best.
    shares: Mapping[str, float] = field(default_factory=dict)
    reached: Mapping[GraphPart, Mapping[str, Reached]] = field(default_factory=dict)
    #: What the random walk's masses were divided by.
    mass_scale: float = 0.0
    records: Sequence[StageRecord] = ()


def part_weights(rules: RankingRules) -> dict[GraphPart, float]:
    """Of the parts that are on: a weight of 0 turns one off, and so does its name among the stages off."""
    if not rules.graph.enabled:
        return {}
    weights = {part: float(getattr(rules.graph, f"{part}_weight")) for part in GRAPH_PARTS}
    return {part: weight for part, weight in weights.items() if weight and part not in rules.stages_off}


def graph_rules(rules: RankingRules, weights: Mapping[GraphPart, float]) -> GraphRules:
    names = {one.name for one in fields(GraphRules)} - {"off"}
    values = {name: getattr(rules.graph, name) for name in names}
    return GraphRules(off=frozenset(part for part in GRAPH_PARTS if part not in weights), **values)


def unit_of(weights: Mapping[LegPart, float]) -> float:
    """Share of the documents leg; 1 where it isn't asked."""
    return scores.total([share for (leg, _), share in weights.items() if leg == "documents"]) or 1.0


def seeds_of(fused: Sequence[Candidate], recalled: Recalled, unit: float) -> Seeds:
    """A document that was named exactly is as good a start as any can be."""
    sessions = {c.doc_id: session_of(c.facts) for c in fused if c.facts is not None and c.recall_score > 0}
    return Seeds(
        documents={c.doc_id: min(c.recall_score / unit, 1.0) for c in fused if c.recall_score > 0},
        sessions={doc_id: one for doc_id, one in sessions.items() if one is not None},
        named=recalled.named,
        names=name_seeds(recalled.names),
        entity_ids=recalled.entity_ids,
        rows={doc_id: seed_row(view) for doc_id, view in recalled.views.items()},
    )


def seed_row(view: DocumentView) -> SeedRow:
    return SeedRow(
        version=view.version,
        tags=tuple(view.tags),
        category=view.category,
        terms=tuple(view.terms),
        session=view.session,
        position=view.position,
        agent_id=view.agent_id,
        team_id=view.team_id,
        scope=view.scope,
    )


def run_parts(run: GraphRun, fused: Sequence[Candidate]) -> GraphRun:
    """Each part over the same subgraph; `hop` last, from what all others have given."""
    totals: _Totals = dict(run.seeds.documents) | {
        c.doc_id: 0.0 for c in fused if c.doc_id not in run.seeds.documents
    }
    reached: dict[GraphPart, Mapping[str, Reached]] = {}
    records: list[StageRecord] = []
    for part in GRAPH_PARTS:
        before, start = len(totals), time.perf_counter()
        weight = run.asked.get(part, 0.0)
        if part == "hop":
            most, shares = max(totals.values(), default=0.0), shares_of(totals)
        if weight:
            some = _reached(part, run, totals)
            reached[part] = {one.doc_id: one for one in some}
            for one in some:
                totals[one.doc_id] = totals.get(one.doc_id, 0.0) + one.value * weight
        spent = (time.perf_counter() - start) * 1_000
        records.append(
            StageRecord(
                stage=part,
                on=bool(weight),
                candidates_in=before,
                candidates_out=len(totals),
                ms=spent,
            )
        )
    scale = mass_scale((one.raw for one in reached.get("pagerank", {}).values()), run.rules)
    weights = {
        part: weight * run.unit * (most if part == "hop" else 1.0) for part, weight in run.asked.items()
    }
    return replace(run, reached=reached, weights=weights, shares=shares, records=records, mass_scale=scale)


def standing_run(run: GraphRun, versions: Mapping[str, int | None], fused: Sequence[Candidate]) -> GraphRun:
    """The same where every edge stands; else all parts once more without those that don't."""
    subgraph = standing(run.subgraph, versions)
    if subgraph.stale == run.subgraph.stale:
        return run
    again = run_parts(replace(run, subgraph=subgraph), fused)
    return replace(again, records=run.records)


def with_graph(run: GraphRun, fused: Sequence[Candidate]) -> list[Candidate]:
    """The fused candidates with what the graph says of them."""
    return [_with_evidence(run, candidate) for candidate in fused]


def brought_in(run: GraphRun, doc_ids: Iterable[str], views: Mapping[str, DocumentView]) -> list[Candidate]:
    """Candidates of documents that no list of the recall has; `views`: rows that are at hand all the same."""
    new = (
        Candidate(doc_id=doc_id, document=views.get(doc_id), facts=views.get(doc_id), evidence=())
        for doc_id in doc_ids
    )
    return [c for c in (_with_evidence(run, candidate) for candidate in new) if c.evidence]


def best_new(run: GraphRun, fused: Sequence[Candidate], size: int) -> list[str]:
    """Documents that the graph alone has reached: those with most, ties by id."""
    known = {candidate.doc_id for candidate in fused}
    totals: dict[str, list[float]] = {}
    for part, some in run.reached.items():
        for doc_id, one in some.items():
            if doc_id not in known:
                totals.setdefault(doc_id, []).append(one.value * run.weights[part])
    ranked = nsmallest(size, [scores.rank_key(scores.total(some), doc_id) for doc_id, some in totals.items()])
    return [doc_id for _, doc_id in ranked]


def _reached(part: GraphPart, run: GraphRun, totals: _Totals) -> list[Reached]:
    if part == "hop":
        return forward_hop(run.subgraph, totals, run.seeds, run.rules)
    return _PARTS[part](run.subgraph, run.seeds, run.rules)


def _with_evidence(run: GraphRun, candidate: Candidate) -> Candidate:
    found = [
        _evidence(part, some[candidate.doc_id], run)
        for part, some in run.reached.items()
        if candidate.doc_id in some
    ]
    if not found:
        return candidate
    kept = {(e.leg, e.part): e for e in (*candidate.evidence, *found)}
    return with_evidence(candidate.doc_id, candidate.document, candidate.facts, kept)


def _evidence(part: GraphPart, reached: Reached, run: GraphRun) -> Evidence:
    rule, scale = VALUE_RULE, 0.0
    if part == "pagerank":
        rule, scale = MASS_RULE, run.mass_scale
    elif part == "hop":
        rule, scale = HOP_RULE, run.shares.get(reached.doc_id, 0.0)
    return Evidence(
        leg="graph",
        part=part,
        raw=reached.raw,
        path=reached.path,
        normaliser=rule,
        scale=scale,
        normalised=reached.value,
        weight=run.weights[part],
    )
