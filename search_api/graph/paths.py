"""The best chain of edges from a seed to a document: how a walk with restart may have come there. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from search_api.graph.chains import Chain, Way, starting_documents, starting_names, ways_of
from search_api.graph.idf import idf
from search_api.graph.model import LINK_KINDS, Edge, GraphRules, Seeds, Step, Subgraph

#: Longest chain: document → name → document → name → document.
STEPS_MAX = 4


def paths_to(
    subgraph: Subgraph, seeds: Seeds, rules: GraphRules, doc_ids: Iterable[str]
) -> dict[str, tuple[Step, ...]]:
    """Of each document the chain that keeps most of a seed's score; none for those that no chain leads to.

    A way keeps (1 − restart) × the edge's weight, half over links backwards (`backward`), and over a name its idf.
    A document that is a seed itself is reached from another seed.
    """
    starts = starting_documents(seeds, rules) | starting_names(subgraph, seeds, rules)
    ways = _ways(subgraph, rules)
    best = _best_two(starts, ways)
    found: dict[str, tuple[Step, ...]] = {}
    for doc_id in doc_ids:
        chain = next((one for seed, one in best.get(doc_id, ()) if seed != doc_id), None)
        if chain is not None and chain.steps:
            found[doc_id] = chain.steps
    return found


def _ways(subgraph: Subgraph, rules: GraphRules) -> dict[str, list[Way]]:
    keeps = 1.0 - rules.restart
    telling = {name: idf(node.documents, subgraph.documents) for name, node in subgraph.names.items()}

    def is_link(edge: Edge) -> bool:
        return edge.kind in LINK_KINDS

    def is_over_names(edge: Edge) -> bool:
        return edge.kind in ("mention", "relation")

    def is_session(edge: Edge) -> bool:
        return edge.kind == "session"

    links = ways_of(subgraph.edges, takes=is_link, forward=keeps, backward=keeps * rules.backward)
    names = ways_of(subgraph.edges, takes=is_over_names, forward=keeps, backward=keeps)
    turns = ways_of(
        subgraph.edges,
        takes=is_session,
        forward=keeps * rules.session_link,
        backward=keeps * rules.session_link * rules.backward,
    )
    joined: dict[str, list[Way]] = {}
    for some in (links, names, turns):
        for node, ways in some.items():
            joined.setdefault(node, []).extend(
                Way(way.end, way.worth * telling.get(way.end, 1.0), way.step) for way in ways
            )
    return joined


#: A seed and the chain that leads from it.
_FromSeed = tuple[str, Chain]


def _best_two(starts: dict[str, float], ways: dict[str, list[Way]]) -> dict[str, list[_FromSeed]]:
    """Node → its best chains from two different seeds, in rounds of one way each."""
    best: dict[str, list[_FromSeed]] = {seed: [(seed, Chain(score, ()))] for seed, score in starts.items()}
    level = dict(best)
    for _ in range(STEPS_MAX):
        offered: dict[str, list[_FromSeed]] = {}
        for node, chains in level.items():
            for way in ways.get(node, ()):
                for seed, chain in chains:
                    if way.end != seed and all(step.source != way.end for step in chain.steps):
                        longer = Chain(chain.worth * way.worth, (*chain.steps, way.step))
                        offered.setdefault(way.end, []).append((seed, longer))
        level = {}
        for node, some in offered.items():
            known = best.get(node, [])
            kept = _two_seeds([*known, *some])
            if kept != known:
                best[node] = kept
                level[node] = [one for one in kept if one not in known]
        if not level:
            break
    return best


def _two_seeds(some: list[_FromSeed]) -> list[_FromSeed]:
    ranked = sorted(some, key=lambda one: (one[1].rank, one[0]))
    first = ranked[0]
    return [first, *[one for one in ranked if one[0] != first[0]][:1]]
