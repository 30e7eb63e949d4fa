"""What is near a document and why: pure functions over any shape of graph."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from search_api.graph.around import near, reasons_around, score_of
from search_api.graph.model import GraphRules, Subgraph
from tests.graphs import DOCUMENTS, like, link, subgraph, subgraphs

STARTS = st.sampled_from(DOCUMENTS)


@given(subgraphs(), STARTS, st.integers(1, 3), st.integers(1, 12), st.integers(0, 12))
def test_near_is_connected_bounded_and_independent_of_the_order_of_edges(
    graph: Subgraph, start: str, depth: int, nodes_max: int, edges_max: int
) -> None:
    found = near(graph, start, depth=depth, nodes_max=nodes_max, edges_max=edges_max)
    assert found.hops[start] == 0
    assert len(found.hops) <= max(1, nodes_max)
    assert len(found.edges) <= edges_max
    assert max(found.hops.values()) <= depth
    assert {node for edge in found.edges for node in (edge.source, edge.target)} <= set(found.hops)
    for node, hop in found.hops.items():
        neighbours = {
            e.target if e.source == node else e.source for e in graph.edges if node in (e.source, e.target)
        }
        assert hop == 0 or any(found.hops.get(other) == hop - 1 for other in neighbours)
    turned = subgraph(reversed(graph.edges), {})
    assert near(turned, start, depth=depth, nodes_max=nodes_max, edges_max=edges_max) == found


@given(subgraphs(), STARTS)
def test_every_reason_is_a_way_from_the_start_and_no_document_is_its_own_relative(
    graph: Subgraph, start: str
) -> None:
    for doc_id, reasons in reasons_around(graph, start, GraphRules()).items():
        assert doc_id != start
        assert doc_id in DOCUMENTS
        for reason in reasons:
            assert (reason.path[0].source, reason.path[-1].target) == (start, doc_id)
            assert 0.0 <= reason.score <= 1.0
        assert [one.score for one in reasons] == sorted((one.score for one in reasons), reverse=True)
        assert 0.0 <= score_of(reasons) <= 4.0


def test_what_is_left_out_is_counted_and_the_strongest_stay() -> None:
    edges = [link("a", other, weight=weight) for other, weight in (("b", 0.2), ("c", 0.9), ("d", 0.5))]
    found = near(subgraph(edges), "a", depth=1, nodes_max=3, edges_max=1)
    assert (dict(found.hops), found.left_out) == ({"a": 0, "c": 1, "d": 1}, 2)
    assert [edge.target for edge in found.edges] == ["c"]


def test_links_both_ways_count_once_and_a_likeness_adds() -> None:
    graph = subgraph([link("a", "b"), link("b", "a", weight=0.9), like("a", "b", "terms", 0.5)])
    reasons = reasons_around(graph, "a", GraphRules())["b"]
    assert [(one.path[0].kind, one.path[0].backward, one.score) for one in reasons] == [
        ("wikilink", False, 1.0),
        ("wikilink", True, 0.9),
        ("terms", False, 0.5),
    ]
    assert score_of(reasons) == 1.5
