"""What holds of the graph's parts for any subgraph: cycles, loops, ties, nothing at all."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_api.graph.entity_hops import entity_hops
from search_api.graph.forward_hop import forward_hop
from search_api.graph.idf import idf
from search_api.graph.model import LINK_KINDS, GraphRules, Reached, Seeds, Subgraph
from search_api.graph.named import named
from search_api.graph.neighbours import neighbours
from search_api.graph.pagerank import flow_of, pagerank, restart_mass, walk_with_restart
from search_api.graph.paths import paths_to
from search_api.graph.session import session
from search_api.graph.session_mates import session_mates
from search_api.graph.walk import walk
from tests.graphs import DOCUMENTS, all_seeds, is_a_path, subgraphs

V = TypeVar("V")
RULES = GraphRules(depth=3, session_link=0.5)


def run_all(graph: Subgraph, seeds: Seeds) -> dict[str, list[Reached]]:
    parts = {
        part.__name__: part(graph, seeds, RULES)
        for part in (named, walk, entity_hops, neighbours, session, session_mates)
    }
    parts["pagerank"] = pagerank(graph, seeds, RULES)
    parts["hop"] = forward_hop(graph, seeds.documents, seeds, RULES)
    return parts


@given(subgraphs(), all_seeds())
def test_values_lie_within_0_and_1_and_each_document_is_reached_once(graph: Subgraph, seeds: Seeds) -> None:
    for found in run_all(graph, seeds).values():
        assert all(0.0 < one.value <= 1.0 + 1e-12 for one in found)
        assert [one.doc_id for one in found] == sorted({one.doc_id for one in found})
        assert {one.doc_id for one in found} <= set(DOCUMENTS)


@given(subgraphs(), all_seeds(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(graph: Subgraph, seeds: Seeds, rnd: random.Random) -> None:
    mixed = list(graph.edges)
    rnd.shuffle(mixed)
    other = replace(
        seeds,
        documents=turned_round(seeds.documents),
        names=turned_round(seeds.names),
    )
    shuffled = replace(graph, edges=mixed, names=turned_round(graph.names))
    assert run_all(shuffled, other) == run_all(graph, seeds)
    assert paths_to(shuffled, other, RULES, DOCUMENTS) == paths_to(graph, seeds, RULES, DOCUMENTS)


def turned_round(values: Mapping[str, V]) -> dict[str, V]:
    return dict(reversed(list(values.items())))


@given(subgraphs(), all_seeds())
def test_every_path_leads_from_a_seed_to_the_document(graph: Subgraph, seeds: Seeds) -> None:
    starts = set(seeds.documents) | set(seeds.named) | set(seeds.names)
    for part, found in run_all(graph, seeds).items():
        for one in found if part not in ("named", "pagerank", "session_mates") else ():
            assert is_a_path(one.path, starts, one.doc_id)
    for doc_id, path in paths_to(graph, seeds, RULES, DOCUMENTS).items():
        assert is_a_path(path, starts, doc_id)


@given(subgraphs(), all_seeds())
def test_a_walk_takes_the_shortest_way_and_visits_once(graph: Subgraph, seeds: Seeds) -> None:
    """One seed at a time, against distances found by plain breadth first search."""
    for seed, score in seeds.documents.items():
        alone = Seeds(documents={seed: score})
        found = walk(graph, alone, RULES) if score > 0 else []
        assert {one.doc_id: len(one.path) for one in found} == _distances(graph, seed, 3 if score > 0 else 0)
        for one in found:
            worth = np.prod([step.edge.weight for step in one.path])
            assert one.value == pytest.approx(score * RULES.decay[len(one.path) - 1] * worth)


def _distances(graph: Subgraph, seed: str, depth: int) -> dict[str, int]:
    ends = [(e.source, e.target) for e in graph.edges if e.kind in LINK_KINDS and e.weight > 0]
    both = {*ends, *((target, source) for source, target in ends)}
    found = {seed: 0}
    waiting = deque([seed])
    while waiting:
        node = waiting.popleft()
        for start, end in both:
            if start == node and end not in found and found[node] < depth:
                found[end] = found[node] + 1
                waiting.append(end)
    del found[seed]
    return found


@given(subgraphs(), all_seeds())
def test_the_random_walk_is_that_of_a_dense_matrix_and_keeps_its_mass(graph: Subgraph, seeds: Seeds) -> None:
    restarts = restart_mass(graph, seeds, RULES)
    flow = flow_of(graph, restarts, RULES)
    seeded = np.array([restarts.get(node, 0.0) for node in flow.nodes])
    if seeded.sum() <= 0:
        assert pagerank(graph, seeds, RULES) == []
        return
    seeded = seeded / seeded.sum()
    dense = _transitions(graph, flow.nodes, seeded)
    assert dense.sum(axis=1) == pytest.approx(np.ones(len(flow.nodes)))
    expected = seeded
    for rounds in range(RULES.rounds + 1):
        mass = walk_with_restart(flow, seeded, restart=0.3, rounds=rounds)
        assert mass.sum() == pytest.approx(1.0)
        assert mass == pytest.approx(expected, abs=1e-12)
        expected = 0.3 * seeded + 0.7 * (expected @ dense)


def _transitions(graph: Subgraph, nodes: tuple[str, ...], seeded: np.ndarray) -> np.ndarray:
    """Node by node, as the docstring of pagerank says it."""
    place = {node: at for at, node in enumerate(nodes)}
    dense = np.zeros((len(nodes), len(nodes)))
    for node in nodes:
        links, names = np.zeros(len(nodes)), np.zeros(len(nodes))
        for edge in graph.edges:
            if edge.source == edge.target or node not in (edge.source, edge.target):
                continue
            forward = edge.source == node
            other = edge.target if forward else edge.source
            if edge.kind in LINK_KINDS or edge.kind == "session":
                kind = RULES.session_link if edge.kind == "session" else 1.0
                links[place[other]] += edge.weight * kind * (1.0 if forward else RULES.backward)
            else:
                known = graph.names[edge.target].documents
                telling = idf(known, graph.documents) if edge.kind == "mention" and forward else 1.0
                names[place[other]] += edge.weight * telling
        parts = [part / part.sum() for part in (links, names) if part.sum() > 0]
        shares = [RULES.link_share, 1 - RULES.link_share] if len(parts) == 2 else [1.0]
        row = sum((share * part for share, part in zip(shares, parts, strict=False)), np.zeros(len(nodes)))
        dense[place[node]] = row if parts else seeded
    return dense


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_name_tells_less_the_more_documents_say_it(documents: int, total: int) -> None:
    assert 0.0 <= idf(documents, total) <= 1.0
    assert documents == 0 or idf(documents, total) >= idf(documents + 1, total)
