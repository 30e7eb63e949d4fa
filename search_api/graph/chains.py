"""Edges as they are walked: which lead on from a node, and what a chain of them is worth. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from search_api.graph.model import Edge, GraphRules, Seeds, Step, Subgraph


class Way(msgspec.Struct, frozen=True, gc=False):
    """An edge with the direction in which it is walked, and what that is worth (0..1).

    A search makes thousands, and few become steps of a path that is shown.
    """

    end: str
    worth: float
    edge: Edge
    backward: bool = False


class Chain(msgspec.Struct, frozen=True, gc=False):
    """A path as its last way and the chain before it; worth: the product of its ways' and of where it starts."""

    worth: float
    start: str
    length: int = 0
    way: Way | None = None
    before: Chain | None = None

    def longer(self, way: Way) -> Chain:
        return Chain(self.worth * way.worth, self.start, self.length + 1, way, self)

    @property
    def steps(self) -> tuple[Step, ...]:
        found: list[Step] = []
        chain: Chain | None = self
        while chain is not None and chain.way is not None:
            found.append(Step(chain.way.edge, chain.way.backward))
            chain = chain.before
        return tuple(reversed(found))

    def beats(self, other: Chain) -> bool:
        """The worthier, then the shorter, then by the nodes and edges passed."""
        if self.worth != other.worth:
            return self.worth > other.worth
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, str, tuple[tuple[str, str, str], ...]]:
        passed = tuple((step.target, step.kind, step.edge.key) for step in self.steps)
        return self.length, self.start, passed


def ways_of(
    edges: Iterable[Edge], *, takes: Callable[[Edge], bool], forward: float, backward: float
) -> Mapping[str, Sequence[Way]]:
    """Node → ways that lead on from it. A factor of 0 closes a direction; an edge to itself leads nowhere."""
    found: defaultdict[str, list[Way]] = defaultdict(list)
    for edge in edges:
        if edge.source == edge.target or not takes(edge):
            continue
        if (worth := edge.weight * forward) > 0:
            found[edge.source].append(Way(edge.target, worth, edge))
        if (worth := edge.weight * backward) > 0:
            found[edge.target].append(Way(edge.source, worth, edge, backward=True))
    return found


def chains_from(start: str, ways: Mapping[str, Sequence[Way]], *, depth: int) -> dict[str, Chain]:
    """Shortest chains to all nodes within `depth` ways; of equally long ones the worthiest. Each node once."""
    visited: dict[str, Chain] = {}
    level = {start: Chain(1.0, start)}
    for _ in range(depth):
        following: dict[str, Chain] = {}
        for node, chain in level.items():
            for way in ways.get(node, ()):
                end = way.end
                if end == start or end in visited:
                    continue
                known = following.get(end)
                if known is None or chain.worth * way.worth >= known.worth:
                    offered = chain.longer(way)
                    if known is None or offered.beats(known):
                        following[end] = offered
        visited |= following
        level = following
        if not level:
            break
    return visited


def best_few(scores: Mapping[str, float], size: int) -> list[tuple[str, float]]:
    """Those over 0, best first, ties by id."""
    ranked = sorted([(-score if score < 1.0 else -1.0, node) for node, score in scores.items() if score > 0])
    return [(node, -score) for score, node in ranked[:size]]


def starting_documents(seeds: Seeds, rules: GraphRules) -> dict[str, float]:
    """The best by recall, and all whose title the question says: the better of both scores."""
    found = dict(best_few(seeds.documents, rules.seeds))
    for doc_id, score in best_few(seeds.named, rules.seeds):
        found[doc_id] = max(score, found.get(doc_id, 0.0))
    return found


def starting_names(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> dict[str, float]:
    """Names that the question says, as the nodes of their entities: only what was read and isn't blocked."""
    found: dict[str, float] = {}
    for name, score in best_few(seeds.names, rules.names_max):
        if (node := subgraph.nodes.get(name)) is not None:
            found[node] = max(score, found.get(node, 0.0))
    return found
