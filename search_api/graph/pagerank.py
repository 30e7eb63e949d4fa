"""A local walk with restart over documents and names: personalised PageRank (Page et al., 1999; Haveliwala, 2002).

Pure. Arrays of numpy, one entry per edge and direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search_api.graph.chains import best_few, starting_names
from search_api.graph.idf import idf
from search_api.graph.kinds import is_name
from search_api.graph.model import LINK_KINDS, GraphRules, Reached, Seeds, Subgraph

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
    """raw: the document's mass after `rounds`; value: as a share of the heaviest document's. Sorted by id.

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
    most = max((value for _, value in of_documents), default=0.0)
    return [
        Reached(doc_id=node, part="pagerank", value=value / most, raw=value)
        for node, value in of_documents
        if value > 0
    ]


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


def flow_of(subgraph: Subgraph, restarts: dict[str, float], rules: GraphRules) -> Flow:
    """Nodes in the order of their names, edges in the order of their nodes: sums don't depend on the rows' order."""
    telling = {name: idf(node.documents, subgraph.documents) for name, node in subgraph.names.items()}
    links: list[tuple[str, str, float]] = []
    others: list[tuple[str, str, float]] = []
    for edge in subgraph.edges:
        if edge.kind in LINK_KINDS or edge.kind == "session":
            weight = edge.weight * (rules.session_link if edge.kind == "session" else 1.0)
            links.append((edge.source, edge.target, weight))
            links.append((edge.target, edge.source, weight * rules.backward))
        elif edge.kind == "mention":
            others.append((edge.source, edge.target, edge.weight * telling.get(edge.target, 0.0)))
            others.append((edge.target, edge.source, edge.weight))
        elif edge.kind == "relation":
            others += ((edge.source, edge.target, edge.weight), (edge.target, edge.source, edge.weight))
    nodes = sorted({node for start, end, _ in (*links, *others) for node in (start, end)} | set(restarts))
    place = {node: at for at, node in enumerate(nodes)}
    over_links, over_names = _shares(links, place), _shares(others, place)
    return _joined(tuple(nodes), over_links, over_names, rules)


def _shares(ways: list[tuple[str, str, float]], place: dict[str, int]) -> tuple[Ints, Ints, Floats]:
    """Start, end and share of each way among those of its start."""
    ways = sorted(way for way in ways if way[2] > 0 and way[0] != way[1])
    start = np.fromiter((place[way[0]] for way in ways), dtype=np.int64, count=len(ways))
    end = np.fromiter((place[way[1]] for way in ways), dtype=np.int64, count=len(ways))
    weight = np.fromiter((way[2] for way in ways), dtype=np.float64, count=len(ways))
    total = np.bincount(start, weights=weight, minlength=len(place))
    return start, end, weight / total[start] if ways else weight


def _joined(
    nodes: tuple[str, ...],
    links: tuple[Ints, Ints, Floats],
    others: tuple[Ints, Ints, Floats],
    rules: GraphRules,
) -> Flow:
    has_links, has_others = np.zeros(len(nodes), dtype=bool), np.zeros(len(nodes), dtype=bool)
    has_links[links[0]] = True
    has_others[others[0]] = True
    both = has_links & has_others
    link_part = np.where(both, rules.link_share, 1.0)
    other_part = np.where(both, 1.0 - rules.link_share, 1.0)
    return Flow(
        nodes=nodes,
        start=np.concatenate((links[0], others[0])),
        end=np.concatenate((links[1], others[1])),
        share=np.concatenate((links[2] * link_part[links[0]], others[2] * other_part[others[0]])),
    )
