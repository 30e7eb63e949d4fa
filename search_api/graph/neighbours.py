"""Documents that are like a seed by their fields. Pure."""

from __future__ import annotations

from search_api.graph.chains import best_few
from search_api.graph.model import FIELD_KINDS, Edge, GraphRules, Reached, Seeds, Step, Subgraph

#: Of equal values the better reason.
_ORDER = {"tags": 0, "category": 1, "terms": 2}


def neighbours(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> list[Reached]:
    """Value = seed's recall score × value of the best kind (tags, category, terms); the best seed's counts.

    The expansion has made the edges, at most `neighbours_max` documents of each seed. Sorted by id.
    """
    starts = dict(best_few(seeds.documents, rules.neighbour_seeds))
    best: dict[str, tuple[tuple[float, int, str], Edge]] = {}
    for edge in subgraph.edges:
        score = starts.get(edge.source, 0.0) if edge.kind in FIELD_KINDS else 0.0
        if score * edge.weight <= 0 or edge.source == edge.target:
            continue
        rank = (-score * edge.weight, _ORDER[edge.kind], edge.source)
        known = best.get(edge.target)
        if known is None or rank < known[0]:
            best[edge.target] = (rank, edge)
    return [
        Reached(doc_id=doc_id, part="neighbours", value=-rank[0], raw=-rank[0], path=(Step(edge),))
        for doc_id, (rank, edge) in sorted(best.items())
    ]
