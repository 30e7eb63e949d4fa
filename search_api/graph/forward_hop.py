"""Where the best documents so far link to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from search_api.graph.chains import best_few
from search_api.graph.model import LINK_KINDS, Edge, GraphRules, Reached, Seeds, Step, Subgraph


def forward_hop(
    subgraph: Subgraph, scores: Mapping[str, float], seeds: Seeds, rules: GraphRules
) -> list[Reached]:
    """`scores`: what the documents have so far, any scale; all as shares of the best one, the top few are parents.

    raw = hop_base × (hop_floor + (1 − hop_floor) × own recall score) × the parent's share × weight of the link ×
    min(1, hop_fan / links of the parent), where the best parent counts: a link lifts a document up to there and no
    further, so value = raw − own share. The more a page links to, the less one of its links says of the question.
    A parent is reached from other parents. Sorted by id.
    """
    shares = shares_of(scores)
    best_shares = dict(best_few(shares, rules.hop_parents))
    links = [edge for edge in subgraph.edges if edge.source in best_shares and edge.kind in LINK_KINDS]
    parents = _fanned(links, best_shares, rules)
    best: dict[str, tuple[tuple[float, str, str], Edge]] = {}
    for edge in links:
        share = parents[edge.source]
        if share <= 0 or edge.source == edge.target:
            continue
        own = min(1.0, max(0.0, seeds.documents.get(edge.target, 0.0)))
        value = rules.hop_base * (rules.hop_floor + (1.0 - rules.hop_floor) * own) * share * edge.weight
        rank = (-value, edge.source, edge.kind)
        known = best.get(edge.target)
        if value > 0 and (known is None or rank < known[0]):
            best[edge.target] = (rank, edge)
    return [
        Reached(doc_id=doc_id, part="hop", value=value, raw=-rank[0], path=(Step(edge),))
        for doc_id, (rank, edge) in sorted(best.items())
        if (value := -rank[0] - shares.get(doc_id, 0.0)) > 0
    ]


def _fanned(links: Iterable[Edge], parents: Mapping[str, float], rules: GraphRules) -> dict[str, float]:
    """Shares of the parents that have links, each for one of them."""
    linked: dict[str, set[str]] = {parent: set() for parent in parents}
    for edge in links:
        linked[edge.source].add(edge.target)
    return {
        parent: share * min(1.0, rules.hop_fan / len(linked[parent]))
        for parent, share in parents.items()
        if linked[parent]
    }


def shares_of(scores: Mapping[str, float]) -> dict[str, float]:
    """Of the best score; empty where there is none above 0."""
    most = max(scores.values(), default=0.0)
    return {node: score / most for node, score in scores.items()} if most > 0 else {}
