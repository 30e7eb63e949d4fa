"""The graph's parts, by worked examples."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise, permutations

import pytest

from indexers.domain.identity import SEPARATOR, link_id, mention_id, relation_id
from search_api.graph.entity_hops import entity_hops
from search_api.graph.forward_hop import forward_hop
from search_api.graph.idf import idf
from search_api.graph.model import Edge, GraphRules, Reached, Seeds, Step, name_node
from search_api.graph.named import named
from search_api.graph.neighbours import neighbours
from search_api.graph.pagerank import pagerank
from search_api.graph.paths import paths_to
from search_api.graph.session import session
from search_api.graph.session_mates import session_mates
from search_api.graph.standing import path_stands, standing
from search_api.graph.walk import walk
from tests.graphs import like, link, mention, relation, subgraph, turn

COPPER, LEDGER = name_node("system", "copper"), name_node("system", "ledger")
#: Easy numbers, whatever the defaults are.
RULES = GraphRules(depth=3, restart=0.3, hop_floor=0.5, session_best=3)


def values(found: list[Reached]) -> dict[str, float]:
    return {one.doc_id: round(one.value, 4) for one in found}


def test_a_walk_decays_with_its_length_and_with_its_edges() -> None:
    graph = subgraph(
        [link("a", "b"), link("c", "b", "unlinked_mention", 0.9), link("c", "d"), link("d", "e")]
    )
    found = walk(graph, Seeds(documents={"a": 0.8}), RULES)
    assert values(found) == {"b": 0.8, "c": 0.36, "d": 0.18}
    assert found[1].path == (
        Step(link("a", "b")),
        Step(link("c", "b", "unlinked_mention", 0.9), backward=True),
    )
    assert values(walk(graph, Seeds(documents={"a": 0.8}), GraphRules(depth=1))) == {"b": 0.8}
    assert values(walk(graph, Seeds(documents={"a": 0.8}), GraphRules(walk_backward=0.0))) == {"b": 0.8}


def test_cycles_are_harmless_and_seeds_are_reached_from_each_other() -> None:
    ring = subgraph([link("a", "b"), link("b", "c"), link("c", "a"), link("a", "a")])
    assert values(walk(ring, Seeds(documents={"a": 1.0}), RULES)) == {"b": 1.0, "c": 1.0}
    assert values(walk(ring, Seeds(documents={"a": 1.0, "b": 0.5}), RULES)) == {"a": 0.5, "b": 1.0, "c": 1.0}


def test_a_shorter_way_counts_even_where_a_longer_one_is_worth_more() -> None:
    graph = subgraph([link("a", "b", weight=0.1), link("a", "c"), link("c", "b")])
    assert values(walk(graph, Seeds(documents={"a": 1.0}), RULES)) == {"b": 0.1, "c": 1.0}


def test_a_title_that_the_question_names_is_a_seed_of_the_walk() -> None:
    seeds = Seeds(documents={"a": 0.2}, named={"b": 1.0, "c": 0.0})
    assert values(walk(subgraph([link("b", "d")]), seeds, RULES)) == {"d": 1.0}
    assert values(named(subgraph([]), seeds, RULES)) == {"b": 1.0}


def test_an_entity_hop_weighs_what_the_name_tells() -> None:
    edges = [mention("a", COPPER, 0.8), mention("b", COPPER, 0.5), mention("b", LEDGER), mention("c", LEDGER)]
    graph = subgraph(edges, {COPPER: 2, LEDGER: 100})
    found = entity_hops(graph, Seeds(documents={"a": 1.0}), RULES)
    assert found == [
        Reached(
            doc_id="b",
            part="entities",
            value=pytest.approx(0.8 * 0.5 * idf(2, 100)),  # type: ignore[arg-type]
            raw=pytest.approx(0.8 * 0.5 * idf(2, 100)),  # type: ignore[arg-type]
            path=(Step(edges[0]), Step(edges[1], backward=True)),
        )
    ]


def test_names_that_lead_to_one_document_add_up_below_1() -> None:
    edges = [mention(doc_id, name) for doc_id in "ab" for name in (COPPER, LEDGER)]
    graph = subgraph(edges, {COPPER: 2, LEDGER: 2})
    [found] = entity_hops(graph, Seeds(documents={"a": 0.5}), RULES)
    assert found.value == pytest.approx(1 - (1 - 0.5 * idf(2, 100)) ** 2)


def test_a_name_in_the_question_leads_to_who_says_it_and_a_relation_to_who_says_the_other() -> None:
    edges = [mention("b", COPPER), relation(COPPER, LEDGER), mention("c", LEDGER)]
    graph = subgraph(edges, {COPPER: 1, LEDGER: 1})
    found = entity_hops(graph, Seeds(documents={}, names={COPPER: 0.8}), RULES)
    assert values(found) == {"b": 0.8, "c": 0.4}
    assert found[1].path == (Step(edges[1]), Step(edges[2], backward=True))


def test_names_that_were_not_read_or_are_blocked_lead_nowhere() -> None:
    graph = subgraph([mention("a", COPPER), mention("b", COPPER)], {})
    seeds = Seeds(documents={"a": 1.0}, names={COPPER: 1.0})
    assert entity_hops(graph, seeds, RULES) == []
    assert values(pagerank(graph, seeds, RULES)) == {"a": 1.0}


def test_only_the_strongest_documents_of_a_name_are_reached() -> None:
    edges = [mention("a", COPPER), *(mention(f"d{n:02}", COPPER, 1 - n / 100) for n in range(40))]
    graph = subgraph(edges, {COPPER: 41})
    found = entity_hops(graph, Seeds(documents={"a": 1.0}), GraphRules(documents_per_name=5))
    assert [one.doc_id for one in found] == [f"d{n:02}" for n in range(5)]


def test_neighbours_count_by_their_best_reason() -> None:
    edges = [like("a", "c", "terms", 0.5), like("a", "c", "tags", 1.0), like("b", "c", "tags", 1.0)]
    found = neighbours(
        subgraph([*edges, like("a", "d", "category", 0.7)]), Seeds(documents={"a": 0.5, "b": 0.4}), RULES
    )
    assert values(found) == {"c": 0.5, "d": 0.35}
    assert found[0].path == (Step(edges[1]),)


def test_turns_get_a_share_of_the_seeds_on_either_side() -> None:
    graph = subgraph([turn("a", "b"), turn("b", "c"), turn("a", "c", 0.5)])
    found = session(graph, Seeds(documents={"a": 0.9, "c": 0.4}), RULES)
    assert values(found) == {"a": 0.1, "b": 1.0, "c": 0.45}
    assert found[1].raw == pytest.approx(0.9 + 0.2)
    assert found[1].path == (Step(turn("a", "b")),)


def test_an_edge_to_itself_leads_nowhere() -> None:
    loops = subgraph([link("a", "a"), turn("a", "a"), like("a", "a", "tags", 1.0), relation(COPPER, COPPER)])
    seeds = Seeds(documents={"a": 1.0})
    found = [part(loops, seeds, RULES) for part in (walk, session, neighbours, entity_hops)]
    assert [*found, forward_hop(loops, {"a": 1.0}, seeds, RULES)] == [[], [], [], [], []]
    assert values(pagerank(loops, seeds, RULES)) == {"a": 1.0}


def test_the_links_of_the_best_are_lifted_towards_them_by_their_own_score_too() -> None:
    """b stands at half of a's score already, and that is where the link from a leads."""
    graph = subgraph([link("a", "b"), link("a", "c"), link("b", "c"), link("e", "f"), link("c", "a")])
    found = forward_hop(graph, {"a": 2.0, "b": 1.0}, Seeds(documents={"c": 0.6, "a": 1.0}), RULES)
    assert values(found) == {"c": 0.8}
    assert found[0].path == (Step(link("a", "c")),)
    assert forward_hop(graph, {}, Seeds(documents={}), RULES) == []
    lower = forward_hop(graph, {"a": 2.0, "b": 0.5}, Seeds(documents={}), replace(RULES, hop_parents=1))
    assert [(one.doc_id, one.value, one.raw) for one in lower] == [("b", 0.25, 0.5), ("c", 0.5, 0.5)]


def test_one_of_many_links_says_less() -> None:
    """Of a page with six links each counts half where three count whole."""
    many = subgraph([link("a", target) for target in "bcdefg"])
    few = subgraph([link("a", target) for target in "bcd"])
    rules, seeds = replace(RULES, hop_fan=3), Seeds(documents={})
    assert set(values(forward_hop(many, {"a": 1.0}, seeds, rules)).values()) == {0.25}
    assert set(values(forward_hop(few, {"a": 1.0}, seeds, rules)).values()) == {0.5}


def test_a_session_is_worth_what_its_best_turns_are() -> None:
    sessions = {"a": "monday", "b": "monday", "c": "monday", "d": "monday", "e": "friday"}
    scores = {"a": 0.9, "b": 0.6, "c": 0.3, "d": 0.1, "e": 0.6, "f": 1.0}
    found = session_mates(subgraph([]), Seeds(documents=scores, sessions=sessions), RULES)
    assert values(found) == {
        "a": pytest.approx(0.6), "b": pytest.approx(0.6), "c": pytest.approx(0.6), "d": pytest.approx(0.6),
        "e": pytest.approx(0.2),
    }  # fmt: skip


def test_mass_flows_along_links_twice_as_much_as_against_them() -> None:
    graph = subgraph([link("a", "b"), link("c", "a")])
    found = {
        one.doc_id: one for one in pagerank(graph, Seeds(documents={"a": 1.0}), replace(RULES, rounds=1))
    }
    assert {doc_id: round(one.raw, 6) for doc_id, one in found.items()} == {
        "a": 0.3,
        "b": round(0.7 * 2 / 3, 6),
        "c": round(0.7 / 3, 6),
    }
    assert found["b"].value == 1.0


def test_half_of_a_documents_mass_goes_over_its_names_and_squared_scores_are_the_seeds() -> None:
    graph = subgraph([link("a", "b"), mention("a", COPPER), mention("c", COPPER)], {COPPER: 2})
    one_round = pagerank(graph, Seeds(documents={"a": 1.0}), replace(RULES, rounds=1))
    assert {one.doc_id: round(one.raw, 6) for one in one_round} == {"a": 0.3, "b": 0.35}
    lone = pagerank(subgraph([]), Seeds(documents={"a": 1.0, "b": 0.5}, named={"c": 0.5}), RULES)
    assert values(lone) == {"a": 1.0, "b": 0.25, "c": 0.5}


def test_a_path_to_what_the_random_walk_found_is_the_chain_that_keeps_most() -> None:
    edges = [
        mention("a", COPPER),
        mention("b", COPPER),
        link("b", "c"),
        link("a", "d"),
        link("d", "c", weight=0.1),
    ]
    graph = subgraph(edges, {COPPER: 2})
    paths = paths_to(graph, Seeds(documents={"a": 1.0}), RULES, ["a", "c", "zz"])
    assert paths == {"c": (Step(edges[0]), Step(edges[1], backward=True), Step(edges[2]))}
    both = paths_to(graph, Seeds(documents={"a": 1.0, "d": 0.1}), RULES, ["a", "d"])
    assert both == {"a": (Step(edges[3], backward=True),), "d": (Step(edges[3]),)}


def test_an_edge_of_an_older_version_is_dropped_and_so_are_those_of_a_document_that_is_gone() -> None:
    old, present, unchecked = link("a", "b", version=1), mention("a", COPPER, version=2), link("x", "y")
    graph = subgraph([old, present, unchecked, link("x", "gone"), link("gone", "x")])
    kept = standing(graph, {"a": 2, "gone": None})
    assert (kept.edges, kept.versions, kept.stale) == ((present, unchecked), {"a": 2}, 3)
    assert not path_stands((Step(unchecked), Step(old)), {"a": 2})
    assert path_stands((Step(unchecked), Step(turn("a", "b"))), {"a": 2})


def test_an_edge_knows_the_row_that_says_it() -> None:
    by_relation = SEPARATOR.join(("name-1", "feeds", "name-2"))
    doc = "6d9f6a53-0c1c-5c0e-8a39-0e8f6e1c3a11"
    ids = [
        Edge(source=doc, target="b", kind="embed", weight=1, said_by=doc, version=3, key="b.md").row_id,
        Edge(
            source=doc, target=COPPER, kind="mention", weight=1, said_by=doc, version=3, key="name-1"
        ).row_id,
        Edge(source=COPPER, target=LEDGER, kind="relation", weight=1, said_by=doc, key=by_relation).row_id,
        turn("a", "b").row_id,
    ]
    assert ids == [
        link_id(doc, 3, "b.md", "embed"),  # type: ignore[arg-type]
        mention_id(doc, "name-1"),  # type: ignore[arg-type]
        relation_id(doc, "name-1", "feeds", "name-2"),  # type: ignore[arg-type]
        "",
    ]


def test_a_walk_of_depth_3_in_a_dense_graph_is_bounded() -> None:
    """Each of 60 documents links to all others: 3,540 edges, 20 seeds."""
    nodes = [f"d{n:02}" for n in range(60)]
    graph = subgraph([link(one, other) for one, other in permutations(nodes, 2)])
    seeds = Seeds(documents={node: 1 - at / 100 for at, node in enumerate(nodes)})
    started = time.process_time()
    found = walk(graph, seeds, RULES)
    ranked = pagerank(graph, seeds, RULES)
    spent = time.process_time() - started
    assert values(found) == {node: 1.0 if node != "d00" else 0.99 for node in nodes}
    assert all(len(one.path) == 1 for one in found)
    assert len(ranked) == 60
    assert spent < 2.0


def test_a_long_chain_is_walked_no_further_than_its_depth() -> None:
    nodes = [f"d{n:04}" for n in range(2_000)]
    graph = subgraph([link(one, other) for one, other in pairwise(nodes)])
    assert values(walk(graph, Seeds(documents={"d0000": 1.0}), RULES)) == {
        "d0001": 1.0,
        "d0002": 0.5,
        "d0003": 0.25,
    }


def test_mass_that_gathers_nowhere_is_not_lifted_to_1() -> None:
    """Twenty starts alike and no way on: each has a twentieth of the mass."""
    seeds = Seeds(documents={f"d{n:02}": 0.5 for n in range(20)})
    assert [one.value for one in pagerank(subgraph([]), seeds, replace(RULES, mass_floor=0.2))] == [
        pytest.approx(0.25**2)
    ] * 20
    assert [one.value for one in pagerank(subgraph([]), seeds, replace(RULES, mass_floor=0.0))] == [1.0] * 20
