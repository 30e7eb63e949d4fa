"""The best chain of edges from a seed to a document: how a walk with restart may have come there. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from search_api.graph.chains import Chain, Way, starting_documents, starting_names
from search_api.graph.idf import idf
from search_api.graph.kinds import EdgeKind
from search_api.graph.model import LINK_KINDS, GraphRules, Seeds, Step, Subgraph

#: Longest chain: document → name → document → name → document.
STEPS_MAX = 4
_NONE: Final[list[Chain]] = []


def paths_to(
    subgraph: Subgraph, seeds: Seeds, rules: GraphRules, doc_ids: Iterable[str]
) -> dict[str, tuple[Step, ...]]:
    """Of each document the chain that keeps most of a seed's score; none for those that no chain leads to.

    A way keeps (1 − restart) × the edge's weight, half over links backwards (`backward`), and over a name its idf.
    A document that is a seed itself is reached from another seed.
    """
    starts = starting_documents(seeds, rules) | starting_names(subgraph, seeds, rules)
    ways = _ways(subgraph, rules)
    wanted = dict.fromkeys(doc_ids)
    best = _best_two(starts, ways, wanted)
    found: dict[str, tuple[Step, ...]] = {}
    for doc_id in wanted:
        chain = next((one for one in best.get(doc_id, ()) if one.start != doc_id), None)
        if chain is not None and chain.way is not None:
            found[doc_id] = chain.steps
    return found


def _ways(subgraph: Subgraph, rules: GraphRules) -> Mapping[str, Sequence[Way]]:
    keeps = 1.0 - rules.restart
    turn = keeps * rules.session_link
    links, names = (keeps, keeps * rules.backward), (keeps, keeps)
    factors: dict[EdgeKind, tuple[float, float]] = {
        **dict.fromkeys(LINK_KINDS, links),
        "mention": names,
        "relation": names,
        "session": (turn, turn * rules.backward),
    }
    telling = {name: idf(node.documents, subgraph.documents) for name, node in subgraph.names.items()}
    found: defaultdict[str, list[Way]] = defaultdict(list)
    for edge in subgraph.edges:
        source, target = edge.source, edge.target
        if source == target or (ways := factors.get(edge.kind)) is None:
            continue
        if (worth := edge.weight * ways[0]) > 0:
            found[source].append(Way(target, worth * telling.get(target, 1.0), edge))
        if (worth := edge.weight * ways[1]) > 0:
            found[target].append(Way(source, worth * telling.get(source, 1.0), edge, backward=True))
    return found


def _best_two(
    starts: Mapping[str, float], ways: Mapping[str, Sequence[Way]], wanted: Collection[str]
) -> dict[str, list[Chain]]:
    """Node → its best chains from two different seeds, best first; whole for the `wanted` ones.

    In rounds of one way each; the last leads to wanted nodes alone, the one before it to what leads there too. No
    chain passes a node twice: without the round it would be worth more, or as much and shorter.
    """
    into = _leading_to(wanted, ways)
    near = {*wanted, *into}
    best = {seed: [Chain(score, seed)] for seed, score in starts.items()}
    level = best.copy()
    least: dict[str, float] = {}
    for left in reversed(range(STEPS_MAX)):
        leading, within = into if left == 0 else ways, near if left == 1 else ways
        offered = _offered(level, leading, within, best, least)
        level = {node: _unknown(kept, best.get(node, _NONE)) for node, kept in offered.items()}
        best |= offered
        if not level:
            break
    return best


def _leading_to(wanted: Collection[str], ways: Mapping[str, Sequence[Way]]) -> Mapping[str, Sequence[Way]]:
    found: defaultdict[str, list[Way]] = defaultdict(list)
    for node, some in ways.items():
        for way in some:
            if way.end in wanted:
                found[node].append(way)
    return found


def _offered(
    level: Mapping[str, Sequence[Chain]],
    ways: Mapping[str, Sequence[Way]],
    within: Collection[str],
    best: Mapping[str, list[Chain]],
    least: dict[str, float],
) -> dict[str, list[Chain]]:
    """Node → its best two now, where one way more to one of `within` gave it a better one.

    `least`: of each node with two chains what the weaker is worth. Most ways offer less, and nothing is made of them.
    """
    offered: dict[str, list[Chain]] = {}
    for node, chains in level.items():
        top = chains[0].worth
        for way in ways.get(node, ()):
            end = way.end
            if end not in within or top * way.worth < least.get(end, 0.0):
                continue
            known = offered.get(end) or best.get(end) or _NONE
            for chain in chains:
                kept = _two(known, chain.longer(way))
                if kept is not known:
                    offered[end] = known = kept
                    if len(kept) == 2:
                        least[end] = kept[1].worth
    return offered


def _unknown(kept: list[Chain], before: list[Chain]) -> list[Chain]:
    """The new ones: what was kept from before is the same object."""
    if not before:
        return kept
    first, last = before[0], before[-1]
    return [one for one in kept if one is not first and one is not last]


def _two(known: list[Chain], offered: Chain) -> list[Chain]:
    """`known` itself where the offer doesn't count."""
    if not known:
        return [offered]
    start = offered.start
    others = [one for one in known if one.start != start]
    if len(others) < len(known):
        same = known[0] if known[0].start == start else known[1]
        if not offered.beats(same):
            return known
    elif len(others) == 2 and not offered.beats(others[1]):
        return known
    if not others:
        return [offered]
    return [offered, others[0]] if offered.beats(others[0]) else [others[0], offered]
