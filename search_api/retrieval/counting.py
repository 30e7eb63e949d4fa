"""What one search adds to the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from itertools import pairwise
from typing import Final

from indexers.domain import scores
from search_api.metrics import ApiMetrics
from search_api.retrieval.candidates import Candidate, Ranking
from search_api.retrieval.factors import factor, is_exact
from search_api.retrieval.found import Found, Page

_TOP: Final = 5


def count_search(metrics: ApiMetrics, found: Found, page: Page) -> None:
    """Once a search, after its page was cut. What the order is made by is counted on first pages only."""
    for record in page.records:
        metrics.count_stage(record.stage, record.candidates_in, record.candidates_out)
    for candidate in page.shown:
        if (kind := related(candidate)) is not None:
            metrics.related_hits.labels(kind=kind).inc()
    if page.first:
        metrics.health_changes.inc(health_changes(page.ranked, found.ranking))
        metrics.source_ties.inc(source_ties(page.ranked[:_TOP], found.ranking))


def related(candidate: Candidate) -> str | None:
    """`only`: the graph alone brought it. `more`: a direct hit that has more of its score from the graph."""
    direct = scores.total([e.contribution for e in candidate.evidence if e.leg != "graph"])
    by_graph = scores.total([e.contribution for e in candidate.evidence if e.leg == "graph"])
    if not by_graph:
        return None
    if not direct:
        return "only"
    return "more" if by_graph > direct else None


def health_changes(ranked: Sequence[Candidate], ranking: Ranking) -> int:
    """Documents among the first five that wouldn't be without the health's factor."""
    if not ranking.is_on("health") or all(c.facts is None or c.facts.health >= 1 for c in ranked):
        return 0
    without = {c.doc_id: _without("health", c, ranking) for c in ranked}
    top = nsmallest(_TOP, ranked, key=lambda c: scores.rank_key(without[c.doc_id], c.doc_id))
    return len({c.doc_id for c in ranked[:_TOP]} - {c.doc_id for c in top})


def source_ties(ranked: Sequence[Candidate], ranking: Ranking) -> int:
    """Neighbours in the order that stand the other way round without the source's factor."""
    if not ranking.is_on("source"):
        return 0
    keys = [scores.rank_key(_without("source", c, ranking), c.doc_id) for c in ranked]
    return sum(before > after for before, after in pairwise(keys))


def _without(name: str, candidate: Candidate, ranking: Ranking) -> float:
    value = 1.0 if is_exact(candidate) else factor(name, candidate, ranking)
    return candidate.score / value if value else candidate.recall_score
