"""A local walk with restart over documents and names: personalised PageRank (Page et al., 1999; Haveliwala, 2002).

Pure. Arrays of numpy, one entry per edge and direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_api.graph.chains import best_few, starting_names
from search_api.graph.idf import idf
from search_api.graph.kinds import is_name
from search_api.graph.model import LINK_KINDS, Edge, GraphRules, Reached, Seeds, Subgraph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Node → node with the share of the mass that goes there; the shares of a node add up to 1, or it has none."""

    nodes: tuple[str, ...]
    start: Ints
    end: Ints
    share: Floats


def pagerank(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> list[Reached]:
    """raw: the document's mass after `rounds`; value: raw ÷ `mass_scale`. Sorted by id.

    Of a document's mass `link_share` goes over its links (backwards weaker by `backward`), the rest over its names,
    by idf and weight of the mention; of a document with one kind alone all goes over that. A name's mass goes over
    its documents and relations. What has no way on gives its mass back to the seeds.
    """
    restarts = restart_mass(subgraph, seeds, rules)
    flow = flow_of(subgraph, restarts, rules)
    seeded = np.array([restarts.get(node, 0.0) for node in flow.nodes], dtype=np.float64)
    if seeded.sum() <= 0:
        return []
    mass = walk_with_restart(flow, seeded / seeded.sum(), restart=rules.restart, rounds=rules.rounds)
    of_documents = [
        (node, value) for node, value in zip(flow.nodes, mass.tolist(), strict=True) if not is_name(node)
    ]
    scale = mass_scale((value for _, value in of_documents), rules)
    return [
        Reached(doc_id=node, part="pagerank", value=value / scale, raw=value)
        for node, value in of_documents
        if value > 0
    ]


def mass_scale(masses: Iterable[float], rules: GraphRules) -> float:
    """What masses are divided by: max(heaviest, floor² ÷ heaviest). So the heaviest gives min(1, heaviest ÷ floor)².

    A walk that gathers nowhere started at many things and at nothing in particular: it says little of the question.
    """
    heaviest = max(masses, default=0.0)
    return max(heaviest, rules.mass_floor**2 / heaviest) if heaviest else 1.0


def restart_mass(subgraph: Subgraph, seeds: Seeds, rules: GraphRules) -> dict[str, float]:
    """Where walks start over: recall scores to the `seed_power`, and what the question names. Not yet normalised."""
    found: dict[str, float] = {
        doc_id: score**rules.seed_power for doc_id, score in best_few(seeds.documents, rules.pagerank_seeds)
    }
    for doc_id, score in best_few(seeds.named, rules.pagerank_seeds):
        found[doc_id] = found.get(doc_id, 0.0) + score * rules.named_mass
    for name, score in starting_names(subgraph, seeds, rules).items():
        found[name] = score * rules.name_mass
    return found


def walk_with_restart(flow: Flow, seeded: Floats, *, restart: float, rounds: int) -> Floats:
    """Mass ← restart · seeded + (1 − restart) · (mass over the edges + mass without a way on · seeded).

    `seeded` adds up to 1, and so does the mass after every round.
    """
    size = len(flow.nodes)
    leads_on = np.zeros(size, dtype=bool)
    leads_on[flow.start] = True
    mass = seeded
    for _ in range(rounds):
        moved = np.bincount(flow.end, weights=mass[flow.start] * flow.share, minlength=size)
        stuck = mass[~leads_on].sum()
        mass = restart * seeded + (1.0 - restart) * (moved + stuck * seeded)
    return mass


def flow_of(subgraph: Subgraph, restarts: Mapping[str, float], rules: GraphRules) -> Flow:
    """Nodes in the order of their names, ways in the order of their nodes: sums don't depend on the edges' order."""
    links = [edge for edge in subgraph.edges if edge.kind in LINK_KINDS]
    turns = [edge for edge in subgraph.edges if edge.kind == "session"]
    mentions = [edge for edge in subgraph.edges if edge.kind == "mention"]
    relations = [edge for edge in subgraph.edges if edge.kind == "relation"]
    ends = {
        node for some in (links, turns, mentions, relations) for e in some for node in (e.source, e.target)
    }
    nodes = sorted(ends | restarts.keys())
    place = {node: at for at, node in enumerate(nodes)}
    telling = np.zeros(len(nodes))
    for name, node in subgraph.names.items():
        if name in place:
            telling[place[name]] = idf(node.documents, subgraph.documents)
    linked, turned = _columns(links, place), _columns(turns, place)
    said, related = _columns(mentions, place), _columns(relations, place)
    over_links = _shares(
        [
            linked,
            _back(linked, rules.backward),
            _scaled(turned, rules.session_link),
            _back(turned, rules.session_link * rules.backward),
        ],
        len(nodes),
    )
    to_names = _Ways(said.start, said.end, said.weight * telling[said.end])
    over_names = _shares([to_names, _back(said, 1.0), related, _back(related, 1.0)], len(nodes))
    return _joined(tuple(nodes), over_links, over_names, rules)


class _Ways(NamedTuple):
    start: Ints
    end: Ints
    weight: Floats


def _columns(edges: Sequence[Edge], place: Mapping[str, int]) -> _Ways:
    return _Ways(
        np.array([place[edge.source] for edge in edges], dtype=np.int64),
        np.array([place[edge.target] for edge in edges], dtype=np.int64),
        np.array([edge.weight for edge in edges], dtype=np.float64),
    )


def _scaled(ways: _Ways, factor: float) -> _Ways:
    return _Ways(ways.start, ways.end, ways.weight * factor)


def _back(ways: _Ways, factor: float) -> _Ways:
    return _Ways(ways.end, ways.start, ways.weight * factor)


def _shares(several: Sequence[_Ways], size: int) -> _Ways:
    """All of them, with their share among those of their start as weight."""
    start, end, weight = (np.concatenate(column) for column in zip(*several, strict=True))
    kept = (weight > 0) & (start != end)
    start, end, weight = start[kept], end[kept], weight[kept]
    order = np.lexsort((weight, end, start))
    start, end, weight = start[order], end[order], weight[order]
    total = np.bincount(start, weights=weight, minlength=size)
    return _Ways(start, end, weight / total[start])


def _joined(nodes: tuple[str, ...], links: _Ways, others: _Ways, rules: GraphRules) -> Flow:
    has_links, has_others = np.zeros(len(nodes), dtype=bool), np.zeros(len(nodes), dtype=bool)
    has_links[links.start] = True
    has_others[others.start] = True
    both = has_links & has_others
    link_part = np.where(both, rules.link_share, 1.0)
    other_part = np.where(both, 1.0 - rules.link_share, 1.0)
    return Flow(
        nodes=nodes,
        start=np.concatenate((links.start, others.start)),
        end=np.concatenate((links.end, others.end)),
        share=np.concatenate(
            (links.weight * link_part[links.start], others.weight * other_part[others.start])
        ),
    )
