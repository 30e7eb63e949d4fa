"""How the subgraph grows: caps, hubs, the next nodes, and names that are one."""

from __future__ import annotations

import random
from typing import Any

from indexers.opensearch.gate import SearchHit
from search_api.graph.columns import (
    DocumentColumns,
    LinkColumns,
    MentionColumns,
    NameColumns,
    RelationColumns,
)
from search_api.graph.conversation import session_edges, turns_around
from search_api.graph.growth import Frontier, Growth
from search_api.graph.kinds import is_name, label_and_key
from search_api.graph.model import Edge, GraphRules, NameNode, SeedRow, Seeds, Subgraph, name_node
from search_api.graph.queries import alike_body, links_from_body, whole_nodes

RULES = GraphRules()
COPPER, LEDGER = name_node("system", "copper"), name_node("system", "ledger")


def link(source: str, target: str, kind: str = "wikilink", version: int = 1) -> LinkColumns:
    return LinkColumns((source,), (target,), (kind,), (version,), (f"{target}.md",))


def mention(doc_id: str, key: str, weight: float = 1.0, namespace: str = "shared") -> MentionColumns:
    return MentionColumns((doc_id,), (f"{namespace}/{key}",), ("system",), (key,), (weight,), (1,))


def name(key: str, documents: int = 1, namespace: str = "shared", **changes: Any) -> NameColumns:
    name_id = f"{namespace}/{key}"
    values: dict[str, Any] = {
        "name_id": name_id,
        "entity_id": name_id,
        "label": "system",
        "key": key,
        "mentions": documents,
        "blocked": False,
        "canonical": True,
    }
    return NameColumns(**{field: (value,) for field, value in (values | changes).items()})


def ends(graph: Subgraph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.edges}


def grown(*rows: LinkColumns, seeds: Seeds, rules: GraphRules = RULES) -> Subgraph:
    growth = Growth(seeds, rules)
    growth.take_links(rows, growth.next_frontier())
    growth.asked()
    return growth.subgraph()


def test_a_link_is_an_edge_with_the_weight_of_its_kind() -> None:
    graph = grown(
        link("a", "b", "unlinked_mention"),
        link("a", "a"),
        link("b", "a", "strange"),
        seeds=Seeds(documents={"a": 1.0}),
    )
    assert graph.edges == (
        Edge(source="a", target="b", kind="unlinked_mention", weight=0.9, said_by="a", version=1, key="b.md"),
    )
    assert graph.round_trips == 1


def test_of_two_versions_the_newer_counts_and_what_the_seeds_row_knows_decides() -> None:
    rows = (link("a", "b", version=1), link("a", "b", version=2), link("a", "c", version=1))
    graph = grown(*rows, seeds=Seeds(documents={"a": 1.0}, rows={"a": SeedRow(version=2)}))
    assert [(edge.target, edge.version) for edge in graph.edges] == [("b", 2)]
    assert (graph.versions, graph.stale) == ({"a": 2}, 1)


def test_a_hub_is_not_walked_backwards_but_its_own_links_and_those_of_seeds_stay() -> None:
    rows = [link(f"x{n:05}", "hub") for n in range(700)]
    rows += [link("a", "hub"), link("hub", "b"), link("c", "a"), link("d", "a")]
    seeds = Seeds(documents={"hub": 1.0, "a": 0.5})
    graph = grown(*rows, seeds=seeds)
    assert ends(graph) == {("a", "hub"), ("hub", "b"), ("c", "a"), ("d", "a")}
    assert graph.truncated == {"edges_of_node": 700}
    capped = grown(*rows, seeds=seeds, rules=GraphRules(hub_links=0, links_to_max=2))
    assert ends(capped) == {("a", "hub"), ("x00000", "hub"), ("hub", "b"), ("c", "a"), ("d", "a")}


def test_of_many_own_links_the_strongest_kinds_stay() -> None:
    rows = [*(link("a", f"u{n}", "unlinked_mention") for n in range(9)), link("a", "w")]
    graph = grown(*rows, seeds=Seeds(documents={"a": 1.0}), rules=GraphRules(links_from_max=3))
    assert ends(graph) == {("a", "w"), ("a", "u0"), ("a", "u1")}


def test_the_next_hop_reads_the_strongest_nodes_that_were_not_read() -> None:
    growth = Growth(Seeds(documents={"a": 1.0, "b": 0.5}), GraphRules(frontier_max=2, names_max=1))
    first = growth.next_frontier()
    assert first == Frontier(documents=("a", "b"), names=())
    growth.take_links(
        [link("a", "c", "unlinked_mention"), link("d", "a"), link("b", "e"), link("a", "b")], first
    )
    growth.take_mentions_in([mention("a", "copper", 0.8), mention("b", "ledger", 0.9)])
    growth.asked()
    assert growth.next_frontier() == Frontier(documents=("d", "c"), names=(COPPER,))
    assert dict(growth.truncated) == {"frontier_max": 1, "names_max": 1}


def read_names(growth: Growth, *rows: NameColumns, mentions: tuple[MentionColumns, ...]) -> Subgraph:
    first = growth.next_frontier()
    growth.take_mentions_in(mentions)
    growth.asked()
    growth.take_names(rows)
    growth.take_mentions_of(mentions, first)
    growth.asked()
    return growth.subgraph()


def test_equal_names_of_two_namespaces_are_one_node_and_their_documents_add_up() -> None:
    graph = read_names(
        Growth(Seeds(documents={"a": 1.0}), RULES),
        name("copper", 3),
        name("copper", 4, "agent:ada"),
        mentions=(mention("a", "copper"), mention("b", "copper", namespace="agent:ada")),
    )
    assert graph.names == {
        COPPER: NameNode(label="system", key="copper", entity_id="agent:ada/copper", documents=7)
    }
    assert ends(graph) == {("a", COPPER), ("b", COPPER)}


def test_names_of_one_entity_are_the_canonical_ones_node() -> None:
    joined = name("cu", 2, entity_id="shared/copper", canonical=False)
    graph = read_names(
        Growth(Seeds(documents={"a": 1.0}), RULES),
        joined,
        name("copper", 1),
        mentions=(mention("a", "cu", 0.4), mention("a", "copper", 0.9), mention("b", "cu")),
    )
    assert graph.nodes == {COPPER: COPPER, name_node("system", "cu"): COPPER}
    assert graph.names[COPPER].documents == 3
    assert [(edge.source, edge.target, edge.weight, edge.key) for edge in graph.edges] == [
        ("a", COPPER, 0.9, "shared/copper"),
        ("b", COPPER, 1.0, "shared/cu"),
    ]


def test_a_blocked_name_is_dropped_and_so_is_one_that_was_not_read() -> None:
    graph = read_names(
        Growth(Seeds(documents={"a": 1.0}, names={COPPER: 1.0}), RULES),
        name("copper", 2, blocked=True),
        name("copper", 2, "agent:ada"),
        mentions=(
            mention("a", "copper"),
            mention("b", "copper", namespace="agent:ada"),
            mention("a", "ledger"),
        ),
    )
    assert ends(graph) == {("b", COPPER)}
    assert graph.truncated["names_unread"] == 1


def test_other_names_of_an_entity_in_the_question_are_looked_for_one_hop_later() -> None:
    growth = Growth(Seeds(documents={}, names={COPPER: 0.8}, entity_ids=("shared/copper",)), RULES)
    growth.next_frontier()
    growth.take_names([name("copper"), name("cu", entity_id="shared/copper", canonical=False)])
    growth.asked()
    assert growth.next_frontier().names == (name_node("system", "cu"),)


def test_caps_keep_the_most_certain_names_of_a_document_and_documents_of_a_name() -> None:
    rules = GraphRules(names_per_document=2, documents_per_name=1)
    growth = Growth(Seeds(documents={"a": 1.0}), rules)
    growth.next_frontier()
    growth.take_mentions_in(
        [mention("a", key, weight) for key, weight in (("x", 0.5), ("y", 0.9), ("z", 0.7))]
    )
    growth.asked()
    second = growth.next_frontier()
    assert second.names == (name_node("system", "y"), name_node("system", "z"))
    growth.take_mentions_of(
        [mention(doc_id, "y", weight) for doc_id, weight in (("b", 0.6), ("c", 0.8))], second
    )
    growth.take_mentions_of([mention("d", "x")], second)
    growth.take_names([name("y", 3), name("z", 1), name("x", 1)])
    assert ends(growth.subgraph()) == {
        (doc_id, name_node("system", key)) for doc_id, key in ("ay", "az", "cy")
    }


def test_the_nearest_edges_of_the_strongest_nodes_stay_within_the_whole_cap() -> None:
    seeds = Seeds(documents={"a": 1.0, "b": 0.5})
    growth = Growth(seeds, GraphRules(edges_max=3))
    first = growth.next_frontier()
    growth.take_links([link("a", "c"), link("b", "d")], first)
    growth.asked()
    growth.take_links([link("c", "e"), link("d", "f")], growth.next_frontier())
    growth.asked()
    graph = growth.subgraph()
    assert ends(graph) == {("a", "c"), ("b", "d"), ("c", "e")}
    assert graph.truncated == {"edges_max": 1}


def test_relations_join_names_as_they_are_normalised() -> None:
    growth = Growth(Seeds(documents={"a": 1.0}), RULES)
    growth.next_frontier()
    row = RelationColumns(
        ("a",), ("Copper",), ("system",), ("shared/copper",), ("feeds",), ("the Ledger",), ("system",),
        ("shared/ledger",), (1,),
    )  # fmt: skip
    growth.take_relations([row])
    growth.take_names([name("copper"), name("ledger")])
    growth.asked()
    [edge] = growth.subgraph().edges
    assert (edge.kind, edge.source, edge.said_by) == ("relation", COPPER, "a")
    assert edge.target.startswith("system\n")


def test_the_order_of_the_rows_changes_nothing() -> None:
    rnd = random.Random(5)  # noqa: S311 — mixes rows, not secrets
    documents = [f"d{n}" for n in range(40)]
    links = [link(rnd.choice(documents), rnd.choice(documents)) for _ in range(400)]
    mentions = [mention(rnd.choice(documents), f"k{rnd.randrange(20)}", rnd.random()) for _ in range(200)]
    mentions = list({(row.doc_id, row.key): row for row in mentions}.values())
    names = [name(f"k{n}", n + 1, entity_id=f"shared/k{n % 7}", canonical=n < 7) for n in range(20)]
    rules = GraphRules(edges_max=120, frontier_max=5, names_max=6, links_from_max=4, hub_links=8)
    seeds = Seeds(documents={node: 1 / (at + 1) for at, node in enumerate(documents[:6])})

    def grow() -> Subgraph:
        growth = Growth(seeds, rules)
        for _ in range(2):
            frontier = growth.next_frontier()
            growth.take_links(links, frontier)
            growth.take_mentions_in(mentions)
            growth.take_mentions_of(mentions, frontier)
            growth.take_names(names)
            growth.asked()
        return growth.subgraph()

    expected = grow()
    for _ in range(5):
        for rows in (links, mentions, names):
            rnd.shuffle(rows)
        assert grow() == expected


def document(doc_id: str, position: int, agent: str = "ada") -> DocumentColumns:
    return DocumentColumns((doc_id,), (1,), (agent,), ("shared",), session=("s",), position=(position,))


def test_turns_of_one_owner_stand_next_to_each_other() -> None:
    rows = {"a": SeedRow(version=1, session="s", position=4, agent_id="ada", scope="shared")}
    assert turns_around(rows["a"], 1) == ["s#3", "s#5"]
    assert turns_around(SeedRow(version=1, session="s"), 1) == []
    found = [document("b", 5), document("c", 3), document("d", 5, "bob"), document("e", 7)]
    assert [(edge.source, edge.target) for edge in session_edges(rows, found, span=1)] == [
        ("a", "b"),
        ("c", "a"),
    ]
    assert session_edges(rows, [document("f", 6)], span=2) == [
        Edge(source="a", target="f", kind="session", weight=0.5)
    ]


def test_what_has_too_few_tags_and_terms_and_no_category_is_like_nothing() -> None:
    assert alike_body("a", SeedRow(version=1, tags=("one",), terms=("x", "y")), RULES) is None
    body = alike_body("a", SeedRow(version=1, tags=("one", "two"), category="ops"), RULES)
    assert body is not None
    assert body["query"] == {
        "bool": {
            "should": [
                {
                    "bool": {
                        "should": [
                            {"term": {"tags": {"value": "one"}}},
                            {"term": {"tags": {"value": "two"}}},
                        ],
                        "minimum_should_match": 2,
                        "_name": "tags",
                    }
                },
                {"term": {"category": {"value": "ops", "_name": "category"}}},
            ],
            "minimum_should_match": 1,
            "filter": [{"term": {"deleted": False}}],
            "must_not": [{"term": {"doc_id": "a"}}],
        }
    }


def test_a_query_stays_below_the_engines_clauses() -> None:
    body = links_from_body([f"d{n}" for n in range(2_000)], RULES)
    assert len(body["query"]["bool"]["should"]) == 900


def test_a_name_is_written_as_a_node_and_read_again() -> None:
    assert (is_name(COPPER), is_name("a1b2")) == (True, False)
    assert label_and_key(COPPER) == ("system", "copper")
    assert label_and_key(name_node("system", "")) == ("system", "")


def test_an_overfull_page_is_read_without_the_node_that_it_cuts() -> None:
    hits = [
        SearchHit(stored_id=f"t/{n}", score=score, seq_no=0, primary_term=1)
        for n, score in enumerate((3, 2, 1, 1))
    ]
    assert whole_nodes(hits, 4) == hits
    assert whole_nodes(hits, 3) == hits[:2]
    assert whole_nodes(hits[:3], 2) == hits[:2]
    assert whole_nodes(hits[2:], 2) == hits[2:]
    assert whole_nodes([], 0) == []
