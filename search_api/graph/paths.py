"""The best chain of edges from a seed to a document: how a walk with restart may have come there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
        chain = next((one for one in best.get(doc_id, ()) if one.start != doc_id), None)
        if chain is not None and chain.step is not None:
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


def _best_two(starts: Mapping[str, float], ways: Mapping[str, Sequence[Way]]) -> dict[str, list[Chain]]:
    """Node → its best chains from two different seeds, best first.

    In rounds of one way each. No chain passes a node twice: without the round it would be worth more, or as much
    and shorter.
    """
    best = {seed: [Chain(score, seed)] for seed, score in starts.items()}
    level = best.copy()
    for _ in range(STEPS_MAX):
        offered: dict[str, list[Chain]] = {}
        for node, chains in level.items():
            for way in ways.get(node, ()):
                end = way.end
                known = offered.get(end) or best.get(end, [])
                for chain in chains:
                    if len(known) == 2 and chain.worth * way.worth < known[1].worth:
                        continue
                    kept = _two(known, chain.longer(way))
                    if kept is not known:
                        offered[end] = known = kept
        level = {
            node: [one for one in kept if one not in best.get(node, [])] for node, kept in offered.items()
        }
        best |= offered
        if not level:
            break
    return best


def _two(known: list[Chain], offered: Chain) -> list[Chain]:
    """`known` itself where the offer doesn't count."""
    same = next((one for one in known if one.start == offered.start), None)
    if same is not None and not offered.beats(same):
        return known
    others = [one for one in known if one is not same]
    if len(others) == 2 and not offered.beats(others[1]):
        return known
    first, *rest = (
        (offered, *others) if not others or offered.beats(others[0]) else (others[0], offered, *others[1:])
    )
    return [first, *rest[:1]]
