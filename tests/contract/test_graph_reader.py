"""The expansion on the real engine: the wall (C13), hubs, blocked names, rows that say nothing any more."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Sequence

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from indexers.domain.identity import (
    Principal,
    mention_id,
)
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index
from search_api.graph.entity_hops import entity_hops
from search_api.graph.fetch import GraphReader
from search_api.graph.model import Edge, EdgeContext, GraphRules, SeedRow, Seeds, Subgraph, name_node
from search_api.graph.neighbours import neighbours
from search_api.graph.pagerank import pagerank
from search_api.graph.paths import paths_to
from search_api.graph.session import session
from search_api.graph.walk import walk
from search_api.metrics import ApiMetrics
from search_api.retrieval.look_up import LookUp
from search_api.retrieval.steps import Steps
from tests.conftest import Stack
from tests.graph_world import LABEL, World, write_contents
from tests.store import namespace, opened_gate, principal

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


GUILD = name_node(LABEL, "copper guild")
CREW = name_node(LABEL, "copper crew")
QUAY = name_node(LABEL, "quay")
RULES = GraphRules(depth=3)
#: The owners of C13: two tenants with equal contents, and in the first what only bob or the team may see.
OWNERS = {
    "t1": namespace("t1"),
    "t2": namespace("t2"),
    "t1-bob": namespace("t1", "bob", "personal"),
    "t1-ops": namespace("t1", "carol", "team", "ops"),
}
HUB_LINKS = 10_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(stack: Stack) -> AsyncIterator[Gate]:
    async with opened_gate(stack.opensearch_url, f"t{os.urandom(6).hex()}") as opened:
        for owner in OWNERS.values():
            world = World(opened, owner)
            write_contents(world)
            await world.write()
        yield opened


def paths_of(world: World, graph: Subgraph, paths: Iterable[str]) -> list[tuple[str, str, str]]:
    """Edges by path: what isn't this owner's stays an id."""
    known = {world.id(path): path for path in paths}
    return sorted(
        (edge.kind, known.get(edge.source, edge.source), known.get(edge.target, edge.target))
        for edge in graph.edges
    )


PATHS = (
    *("ledger.md", "vault-key.md", "deep.md", "deeper.md", "audit.md", "guild.md", "crew.md"),
    *(f"turn-{n}.md" for n in range(3)),
)
EXPECTED = sorted(
    [
        ("wikilink", "ledger.md", "vault-key.md"),
        ("unlinked_mention", "deep.md", "vault-key.md"),
        ("reference", "deep.md", "deeper.md"),
        ("mention", "ledger.md", GUILD),
        ("mention", "guild.md", GUILD),
        ("mention", "crew.md", CREW),
        ("relation", GUILD, CREW),
        ("tags", "ledger.md", "audit.md"),
        ("category", "ledger.md", "audit.md"),
        ("terms", "ledger.md", "audit.md"),
        ("session", "turn-0.md", "turn-1.md"),
        ("session", "turn-1.md", "turn-2.md"),
    ]
)


@pytest.mark.parametrize(("owner", "who"), [("t1", principal("t1")), ("t2", principal("t2", "bob", "ops"))])
async def test_c13_no_walk_hop_neighbour_turn_or_count_sees_another_tenant(
    gate: Gate, owner: str, who: Principal
) -> None:
    world, others = (
        World(gate, OWNERS[owner]),
        [World(gate, ns) for name, ns in OWNERS.items() if name != owner],
    )
    foreign = {other.id(path): 1.0 for other in others for path in PATHS}
    seeds = Seeds(documents={world.id("ledger.md"): 1.0, world.id("turn-1.md"): 0.5})
    graph = await GraphReader(gate).expand(who, seeds, RULES)
    assert paths_of(world, graph, PATHS) == EXPECTED
    assert (graph.documents, graph.round_trips) == (10, 3)
    assert {node: name.documents for node, name in graph.names.items()} == {GUILD: 2, CREW: 1}
    asked = await GraphReader(gate).expand(who, Seeds(documents=foreign, names={GUILD: 1.0}), RULES)
    assert set(foreign).isdisjoint({node for edge in asked.edges for node in (edge.source, edge.target)})


async def test_c13_within_a_tenant_a_walk_stays_in_what_the_asker_may_see(gate: Gate) -> None:
    """Bob sees the shared documents and his own; equal names of both are one node, and their counts add up."""
    bob, shared = World(gate, OWNERS["t1-bob"]), World(gate, OWNERS["t1"])
    seeds = Seeds(documents={bob.id("ledger.md"): 1.0})
    graph = await GraphReader(gate).expand(principal("t1", "bob"), seeds, GraphRules())
    says_guild = {edge.source for edge in graph.edges if edge.target == GUILD}
    assert says_guild == {world.id(path) for world in (bob, shared) for path in ("ledger.md", "guild.md")}
    assert (graph.names[GUILD].documents, graph.documents) == (4, 20)
    ada = await GraphReader(gate).expand(principal("t1"), seeds, GraphRules())
    assert ada.edges == ()


async def test_each_part_reaches_what_it_should_with_its_path(gate: Gate) -> None:
    world = World(gate, OWNERS["t1"])
    seeds = Seeds(documents={world.id("ledger.md"): 1.0, world.id("turn-1.md"): 0.5})
    graph = await GraphReader(gate).expand(principal("t1"), seeds, RULES)
    known = {world.id(path): path for path in PATHS}
    reached = {
        part.__name__: {known[one.doc_id] for one in part(graph, seeds, RULES)}
        for part in (walk, entity_hops, neighbours, session, pagerank)
    }
    linked = {"vault-key.md", "deep.md", "deeper.md"}
    named = {"guild.md", "crew.md"}
    assert reached == {
        "walk": linked,
        "entity_hops": named,
        "neighbours": {"audit.md"},
        "session": {"turn-0.md", "turn-2.md"},
        "pagerank": linked | named | {"ledger.md", "turn-1.md"},
    }


async def test_what_says_an_edge_is_read_for_its_path(gate: Gate) -> None:
    world = World(gate, OWNERS["t1"])
    seeds = Seeds(documents={world.id("ledger.md"): 1.0})
    graph = await GraphReader(gate).expand(principal("t1"), seeds, RULES)
    crew, key = world.id("crew.md"), world.id("vault-key.md")
    found = paths_to(graph, seeds, RULES, [crew, key])
    edges = [step.edge for path in found.values() for step in path]
    contexts = await contexts_for("t1", gate, edges)
    assert {doc_id: [told(contexts[step.row_id]) for step in path] for doc_id, path in found.items()} == {
        crew: ["Of the Copper Guild.", "Redis feeds the ledger", "Of the Copper Crew."],
        key: ["ledger.md says [[vault-key.md]]"],
    }
    surfaces = {None if context is None else context.surface for context in contexts.values()}
    assert surfaces == {"Copper Guild", "Copper Crew", None}
    assert await contexts_for("t2", gate, edges) == dict.fromkeys(contexts)


async def contexts_for(tenant: str, gate: Gate, edges: Sequence[Edge]) -> dict[str, EdgeContext | None]:
    look_up = LookUp(gate, principal(tenant), Steps(ApiMetrics(CollectorRegistry())))
    await look_up.read((), edges)
    return look_up.contexts


def told(context: EdgeContext | None) -> str:
    assert context is not None
    return context.text


async def test_rows_at_hand_save_a_hop_and_parts_that_are_off_cost_nothing(gate: Gate) -> None:
    world, who = World(gate, OWNERS["t1"]), principal("t1")
    middle = SeedRow(version=1, session="monday", position=1, agent_id="ada", scope="shared")
    seeds = Seeds(documents={world.id("turn-1.md"): 1.0}, rows={world.id("turn-1.md"): middle})
    only = GraphRules(depth=1, off=frozenset({"walk", "entities", "neighbours", "pagerank", "hop"}))
    graph = await GraphReader(gate).expand(who, seeds, only)
    assert paths_of(world, graph, PATHS) == [
        ("session", "turn-0.md", "turn-1.md"),
        ("session", "turn-1.md", "turn-2.md"),
    ]
    assert graph.round_trips == 1
    none = GraphRules(off=only.off | {"session"})
    assert (await GraphReader(gate).expand(who, seeds, none)).round_trips == 0
    assert (await GraphReader(gate).expand(who, seeds, GraphRules(depth=0))).round_trips == 0


async def test_a_hub_with_10_000_links_neither_floods_nor_crowds_out_the_others(gate: Gate) -> None:
    world = World(gate, namespace("hub"))
    world.link("hub.md", "forward.md")
    for number in range(HUB_LINKS):
        world.link(f"x{number}.md", "hub.md")
    for number in range(5):
        world.link(f"y{number}.md", "small.md")
    world.link("small.md", "hub.md")
    await world.write()
    seeds = Seeds(documents={world.id("hub.md"): 1.0, world.id("small.md"): 0.5})
    graph = await GraphReader(gate).expand(principal("hub"), seeds, GraphRules(depth=3))
    small = [("wikilink", f"y{number}.md", "small.md") for number in range(5)]
    expected = [("wikilink", "hub.md", "forward.md"), ("wikilink", "small.md", "hub.md"), *small]
    paths = ("hub.md", "small.md", "forward.md", *(f"y{number}.md" for number in range(5)))
    assert paths_of(world, graph, paths) == sorted(expected)
    assert graph.truncated == {"links_page": 1}
    none = GraphRules(depth=3, hub_links=0)
    assert (await GraphReader(gate).expand(principal("hub"), seeds, none)).edges == graph.edges


async def test_of_a_document_with_a_hundred_links_to_it_so_many_are_walked_as_the_rules_say(
    gate: Gate,
) -> None:
    world = World(gate, namespace("index"))
    for number in range(100):
        world.link(f"x{number}.md", "index.md")
    await world.write()
    seeds = Seeds(documents={world.id("index.md"): 1.0})

    async def read(rules: GraphRules) -> Subgraph:
        return await GraphReader(gate).expand(principal("index"), seeds, rules)

    assert (await read(GraphRules(depth=1))).edges == ()
    few = await read(GraphRules(depth=1, hub_links=0))
    assert [edge.source for edge in few.edges] == sorted(world.id(f"x{n}.md") for n in range(100))[:40]
    assert few.truncated == {"edges_of_node": 60}
    assert (await read(GraphRules(depth=1, hub_links=0, links_page=100))) == few
    cut = await read(GraphRules(depth=1, hub_links=0, links_page=99))
    # Alone, its first links are any others' as well; beside others it would take what room is left.
    assert (cut.edges, cut.truncated) == (few.edges, {"edges_of_node": 60, "links_page": 1})
    beside = Seeds(documents={world.id("index.md"): 1.0, world.id("x0.md"): 1.0})
    shared = await GraphReader(gate).expand(
        principal("index"), beside, GraphRules(depth=1, hub_links=0, links_page=99)
    )
    assert [edge.source for edge in shared.edges] == [world.id("x0.md")]


async def test_a_blocked_name_is_never_walked_and_a_row_of_an_older_version_says_nothing(gate: Gate) -> None:
    world = World(gate, namespace("curated"))
    world.document("a.md", version=2)
    world.link("a.md", "new.md", version=2)
    world.link("a.md", "old.md", version=1)
    for path in ("a.md", "b.md", "c.md"):
        world.mention(path, "quay")
        world.mention(path, "copper guild")
    world.name("quay", 3, blocked=True)
    world.name("copper guild", 3)
    await world.write()
    await gate.write(
        [
            RowWrite(
                principal=Principal.pipeline(namespace("curated").tenant_id),
                index=Index.MENTIONS,
                row_id=mention_id(world.id("a.md"), world.name_id("copper guild")),  # type: ignore[arg-type]
                action="delete",
                version=2,
            )
        ]
    )
    await gate.refresh()
    seeds = Seeds(documents={world.id("a.md"): 1.0}, names={QUAY: 1.0, GUILD: 0.5})
    graph = await GraphReader(gate).expand(principal("curated"), seeds, GraphRules())
    assert paths_of(world, graph, ("a.md", "b.md", "c.md", "new.md", "old.md")) == [
        ("mention", "b.md", GUILD),
        ("mention", "c.md", GUILD),
        ("wikilink", "a.md", "new.md"),
    ]
    assert set(graph.nodes) == {GUILD}


async def test_aliases_of_an_entity_in_the_question_lead_to_who_says_them(gate: Gate) -> None:
    world = World(gate, namespace("alias"))
    world.mention("a.md", "copper guild")
    world.mention("b.md", "copper crew")
    world.name("copper guild", 1)
    world.name("copper crew", 1, entity_id=world.name_id("copper guild"), canonical=False)
    world.document("a.md")
    await world.write()
    seeds = Seeds(documents={}, names={GUILD: 0.8}, entity_ids=(world.name_id("copper guild"),))
    graph = await GraphReader(gate).expand(principal("alias"), seeds, GraphRules())
    assert paths_of(world, graph, ("a.md", "b.md")) == [
        ("mention", "a.md", GUILD),
        ("mention", "b.md", GUILD),
    ]
    assert graph.names[GUILD].documents == 2
    assert {one.doc_id for one in entity_hops(graph, seeds, RULES)} == {world.id("a.md"), world.id("b.md")}
