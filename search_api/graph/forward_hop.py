"""Where the best documents so far link to. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from search_api.graph.chains import best_few
from search_api.graph.model import LINK_KINDS, Edge, GraphRules, Reached, Seeds, Step, Subgraph


def forward_hop(
    subgraph: Subgraph, scores: Mapping[str, float], seeds: Seeds, rules: GraphRules
) -> list[Reached]:
    """`scores`: what the documents have so far, any scale; the top few are parents.

    value = hop_base × (hop_floor + (1 − hop_floor) × own recall score) × the parent's share of the best score ×
    weight of the link; the best parent's counts. A parent is reached from other parents. Sorted by id.
    """
    parents = _shares(scores, rules.hop_parents)
    best: dict[str, tuple[tuple[float, str, str], Edge]] = {}
    for edge in subgraph.edges:
        share = parents.get(edge.source, 0.0) if edge.kind in LINK_KINDS else 0.0
        if share <= 0 or edge.source == edge.target:
            continue
        own = min(1.0, max(0.0, seeds.documents.get(edge.target, 0.0)))
        value = rules.hop_base * (rules.hop_floor + (1.0 - rules.hop_floor) * own) * share * edge.weight
        rank = (-value, edge.source, edge.kind)
        known = best.get(edge.target)
        if value > 0 and (known is None or rank < known[0]):
            best[edge.target] = (rank, edge)
    return [
        Reached(doc_id=doc_id, part="hop", value=-rank[0], raw=-rank[0], path=(Step(edge),))
        for doc_id, (rank, edge) in sorted(best.items())
    ]


def _shares(scores: Mapping[str, float], size: int) -> dict[str, float]:
    most = max(scores.values(), default=0.0)
    return dict(best_few({node: score / most for node, score in scores.items()}, size)) if most > 0 else {}
