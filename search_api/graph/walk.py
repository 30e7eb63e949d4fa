"""Links, both ways. Pure."""

from __future__ import annotations

from search_api.graph.chains import Chain, chains_from, starting_documents, ways_of
from search_api.graph.model import LINK_KINDS, GraphRules, Reached, Seeds, Subgraph


def walk(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> list[Reached]:
    """Value = seed's score × decay of the path's length × weights of its edges; the best seed's counts.

    From each seed every document is reached once, by its shortest path; a seed is reached from others, never from
    itself. Sorted by id.
    """
    ways = ways_of(
        subgraph.edges,
        takes=lambda edge: edge.kind in LINK_KINDS,
        forward=1.0,
        backward=rules.walk_backward,
    )
    depth = min(rules.depth, len(rules.decay))
    best: dict[str, tuple[float, Chain]] = {}
    for seed, score in sorted(starting_documents(seeds, rules).items()):
        for doc_id, chain in chains_from(seed, ways, depth=depth).items():
            value = score * rules.decay[chain.length - 1] * chain.worth
            known = best.get(doc_id)
            if known is None or _better(value, chain, known):
                best[doc_id] = (value, chain)
    return [
        Reached(doc_id=doc_id, part="walk", value=value, raw=value, path=chain.steps)
        for doc_id, (value, chain) in sorted(best.items())
        if value > 0
    ]


def _better(value: float, chain: Chain, known: tuple[float, Chain]) -> bool:
    """Of equal values the shorter path; seeds are taken in order, so the first of two alike stays."""
    return (-value, chain.length) < (-known[0], known[1].length)
