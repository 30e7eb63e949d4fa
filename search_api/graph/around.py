"""What stands around one document: what is near it, and what is related to it and why. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from search_api.graph.entity_hops import entity_hops
from search_api.graph.kinds import FIELD_KINDS, LINK_KINDS
from search_api.graph.model import Edge, GraphRules, Seeds, Step, Subgraph

#: Reasons of one group don't add up: two links both ways are not twice as near.
Group = Literal["link", "likeness", "session", "names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Nodes by their distance in edges, and the edges among them."""

    hops: Mapping[str, int]
    edges: tuple[Edge, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One way from the document to its relative, as walked."""

    group: Group
    path: tuple[Step, ...]
    score: float


def near(subgraph: Subgraph, start: str, *, depth: int, nodes_max: int, edges_max: int) -> Near:
    """Nodes within `depth` edges either way, the nearest first, of equal distance those of the strongest way, then id.

    A way is as strong as the product of its weights. Of the edges those nearest to the start, then by weight.
    """
    touching: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for edge in subgraph.edges:
        touching[edge.source].append((edge.target, edge.weight))
        touching[edge.target].append((edge.source, edge.weight))
    hops, level, left_out = {start: 0}, {start: 1.0}, 0
    for hop in range(1, depth + 1):
        offered: dict[str, float] = {}
        for node, strength in level.items():
            for other, weight in touching[node]:
                if other not in hops:
                    offered[other] = max(offered.get(other, 0.0), strength * weight)
        ranked = sorted(offered.items(), key=lambda one: (-one[1], one[0]))
        kept = dict(ranked[: max(0, nodes_max - len(hops))])
        left_out += len(ranked) - len(kept)
        hops |= dict.fromkeys(kept, hop)
        level = kept
    edges = [edge for edge in subgraph.edges if edge.source in hops and edge.target in hops]
    edges.sort(key=lambda e: (min(hops[e.source], hops[e.target]), -e.weight, e.kind, e.source, e.target))
    return Near(hops=hops, edges=tuple(edges[:edges_max]), left_out=left_out + max(0, len(edges) - edges_max))


def reasons_around(subgraph: Subgraph, start: str, rules: GraphRules) -> dict[str, list[Reason]]:
    """Document → every edge between it and the start, and what both name. The start itself is not among them."""
    found: defaultdict[str, list[Reason]] = defaultdict(list)
    for edge in subgraph.edges:
        backward = edge.target == start
        if edge.source == edge.target or (edge.source != start and not backward):
            continue
        group = _GROUPS.get(edge.kind)
        if group is None:
            continue
        step = Step(edge, backward)
        share = rules.session_previous if backward and edge.kind == "session" else 1.0
        found[step.target].append(Reason(group=group, path=(step,), score=edge.weight * share))
    for reached in entity_hops(subgraph, Seeds(documents={start: 1.0}), rules):
        found[reached.doc_id].append(Reason(group="names", path=reached.path, score=reached.value))
    found.pop(start, None)
    return {doc_id: sorted(some, key=_strongest) for doc_id, some in found.items()}


def score_of(reasons: Iterable[Reason]) -> float:
    """The best of each group, added up."""
    best: dict[Group, float] = {}
    for reason in reasons:
        best[reason.group] = max(best.get(reason.group, 0.0), reason.score)
    return sum(best[group] for group in sorted(best))


_GROUPS: Final[Mapping[str, Group]] = {
    **dict.fromkeys(LINK_KINDS, "link"),
    **dict.fromkeys(FIELD_KINDS, "likeness"),
    "session": "session",
}


def _strongest(reason: Reason) -> tuple[float, str, bool, str]:
    first = reason.path[0]
    return -reason.score, first.kind, first.backward, first.edge.key
