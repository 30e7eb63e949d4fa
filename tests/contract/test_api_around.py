"""`/related` and `/graph` of a document on the real engine: the wall, cycles, hubs, what is said no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from indexers.domain.identity import Namespace, Principal
from tests.api import Service, running_service
from tests.conftest import Stack
from tests.graph_world import World, write_contents
from tests.store import namespace, principal

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ADA, BOB = principal("t1"), principal("t1", "bob")
FOREIGN = principal("t2", "bob", "ops")
SHARED, OF_BOB, OF_OTHERS = namespace("t1"), namespace("t1", "bob", "personal"), namespace("t2")
HUB_LINKS = 900


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("around")
    async with running_service(stack.opensearch_url, folder, principals=[ADA, BOB, FOREIGN]) as running:
        for owner in (SHARED, OF_BOB, OF_OTHERS):
            world = World(running.gate, owner)
            write_contents(world)
            if owner is SHARED:
                write_more(world)
            await world.write()
        yield running


def write_more(world: World) -> None:
    """A cycle of three, a hub, and a link that a later version of its document says no more."""
    for here, there in (
        ("wheel-1.md", "wheel-2.md"),
        ("wheel-2.md", "wheel-3.md"),
        ("wheel-3.md", "wheel-1.md"),
    ):
        world.document(here)
        world.link(here, there)
    world.document("hub.md")
    for number in range(HUB_LINKS):
        world.document(f"spoke-{number}.md")
        world.link(f"spoke-{number}.md", "hub.md")
    world.document("moved-on.md", version=2)
    world.document("still.md")
    world.link("moved-on.md", "still.md", version=1)


def at(service: Service, owner: Namespace, path: str) -> str:
    return f"/v1/documents/{World(service.gate, owner).id(path)}"


async def answered(service: Service, who: Principal, path: str, status: int = 200) -> Any:
    answer = await service.get(who, path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def related(service: Service, who: Principal, owner: Namespace, path: str) -> dict[str, Any]:
    found = await answered(service, who, f"{at(service, owner, path)}/related")
    return {
        one["document"]["path"]: [(r["kind"], r["text"], r["score"]) for r in one["reasons"]]
        for one in found["related"]
    }


@pytest.mark.parametrize(("who", "owner"), [(ADA, SHARED), (FOREIGN, OF_OTHERS)])
async def test_relatives_and_the_reasons_that_each_document_says(
    service: Service, who: Principal, owner: Namespace
) -> None:
    found = await related(service, who, owner, "ledger.md")
    guild = found.pop("guild.md")
    assert found == {
        "audit.md": [
            ("tags", "both have the tags audit, copper", 1.0),
            ("category", "both are of the category books", 0.7),
            ("terms", "both speak of ingot, ore, tin", 0.5),
        ],
        "vault-key.md": [("wikilink", "links to it: ledger.md says [[vault-key.md]]", 1.0)],
    }
    assert [reason[:2] for reason in guild] == [
        ("mention", "both name Copper Guild (organization): Of the Copper Guild.")
    ]
    backward = await related(service, who, owner, "vault-key.md")
    assert backward == {
        "deep.md": [("unlinked_mention", "linked from it: deep.md says [[vault-key.md]]", 0.9)],
        "ledger.md": [("wikilink", "linked from it: ledger.md says [[vault-key.md]]", 1.0)],
    }
    turns = await related(service, who, owner, "turn-1.md")
    assert turns == {
        "turn-2.md": [("session", "the turn after in the same session", 1.0)],
        "turn-0.md": [("session", "the turn before in the same session", 0.5)],
    }


async def test_order_and_page_size(service: Service) -> None:
    path = f"{at(service, SHARED, 'ledger.md')}/related"
    whole = (await answered(service, ADA, path))["related"]
    ranked = [(-one["score"], one["document"]["doc_id"]) for one in whole]
    assert ranked == sorted(ranked)
    assert (await answered(service, ADA, f"{path}?page_size=2"))["related"] == whole[:2]
    for size in (0, 51, "x"):
        refused = await answered(service, ADA, f"{path}?page_size={size}", 422)
        assert [error["field"] for error in refused["errors"]] == ["query.page_size"]


async def test_the_graph_by_depth(service: Service) -> None:
    path = f"{at(service, SHARED, 'ledger.md')}/graph"
    by_depth: dict[int, dict[str, int]] = {}
    for depth in (1, 2, 3):
        found = await answered(service, ADA, f"{path}?depth={depth}")
        assert found["capped"] is False
        by_depth[depth] = {node["path"] or node["title"]: node["hop"] for node in found["nodes"]}
        ids = {node["id"] for node in found["nodes"]}
        assert len(ids) == len(found["nodes"])
        assert {edge[side] for edge in found["edges"] for side in ("source", "target")} <= ids
    near = {"ledger.md": 0, "vault-key.md": 1, "audit.md": 1, "Copper Guild": 1}
    assert by_depth == {
        1: near,
        2: near | {"deep.md": 2, "guild.md": 2, "Copper Crew": 2},
        3: near | {"deep.md": 2, "guild.md": 2, "Copper Crew": 2, "deeper.md": 3, "crew.md": 3},
    }
    found = await answered(service, ADA, path)
    titles = {node["id"]: node["title"] for node in found["nodes"]}
    assert [(titles[e["source"]], e["kind"], titles[e["target"]], e["weight"]) for e in found["edges"]] == [
        ("Copper ledger", "tags", "A", 1.0),
        ("Copper ledger", "wikilink", "vault-key", 1.0),
        ("Copper ledger", "mention", "Copper Guild", 0.9),
        ("Copper ledger", "category", "A", 0.7),
        ("Copper ledger", "terms", "A", 0.5),
    ]
    for refused in ("0", "4", "x"):
        await answered(service, ADA, f"{path}?depth={refused}", 422)


async def test_a_cycle_is_walked_once(service: Service) -> None:
    found = await answered(service, ADA, f"{at(service, SHARED, 'wheel-1.md')}/graph?depth=3")
    assert found["nodes"][0]["path"] == "wheel-1.md"
    assert {node["path"]: node["hop"] for node in found["nodes"]} == {
        "wheel-1.md": 0,
        "wheel-2.md": 1,
        "wheel-3.md": 1,
    }
    assert len(found["edges"]) == 3


async def test_a_hub_shows_some_of_its_links_and_says_that_there_are_more(service: Service) -> None:
    found = await answered(service, ADA, f"{at(service, SHARED, 'hub.md')}/graph?depth=3")
    assert found["capped"] is True
    assert len(found["nodes"]) == 41
    assert found == await answered(service, ADA, f"{at(service, SHARED, 'hub.md')}/graph?depth=3")
    relatives = await answered(service, ADA, f"{at(service, SHARED, 'hub.md')}/related?page_size=50")
    assert len(relatives["related"]) == 40


async def test_what_a_document_says_no_more_is_no_edge(service: Service) -> None:
    path = at(service, SHARED, "still.md")
    assert await answered(service, ADA, f"{path}/related") == {"related": []}
    found = await answered(service, ADA, f"{path}/graph")
    assert [node["path"] for node in found["nodes"]] == ["still.md"]
    assert found["edges"] == []


async def test_bob_sees_his_own_beside_the_shared_and_ada_does_not(service: Service) -> None:
    mine = await answered(service, BOB, f"{at(service, OF_BOB, 'ledger.md')}/graph?depth=3")
    assert {node["path"] for node in mine["nodes"]} >= {"guild.md", "vault-key.md"}
    shared = await answered(service, ADA, f"{at(service, SHARED, 'ledger.md')}/graph?depth=3")
    own = {World(service.gate, OF_BOB).id(path) for path in ("ledger.md", "guild.md", "vault-key.md")}
    assert own.isdisjoint({node["id"] for node in shared["nodes"]})
    assert own & {node["id"] for node in mine["nodes"]}


@pytest.mark.parametrize("route", ["related", "graph", "graph?depth=3"])
async def test_what_is_hidden_answers_as_what_is_not_there(service: Service, route: str) -> None:
    unknown = "00000000-0000-5000-8000-000000000000"
    hidden = [
        (ADA, f"{at(service, OF_OTHERS, 'ledger.md')}/{route}"),
        (FOREIGN, f"{at(service, SHARED, 'ledger.md')}/{route}"),
        (ADA, f"{at(service, OF_BOB, 'ledger.md')}/{route}"),
    ]
    answers = [
        (await service.get(who, path, **{"x-request-id": "same"})).content
        for who, path in [
            *hidden,
            (ADA, f"/v1/documents/{unknown}/{route}"),
            (ADA, f"/v1/documents/x/{route}"),
        ]
    ]
    assert len(set(answers)) == 1
    assert b"No such document" in answers[0]


async def test_few_round_trips(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another: 3 for what is related, at most depth + 2 for the graph. The row is read beside the first."""
    asked: list[str] = []
    for name in ("search_many", "get_rows"):
        original = getattr(service.gate, name)

        async def counted(given: Any, *, original: Any = original, name: str = name) -> Any:
            asked.append(name)
            return await original(given)

        monkeypatch.setattr(service.gate, name, counted)
    trips: dict[str, list[str]] = {}
    for route in ("related", "graph?depth=1", "graph?depth=3"):
        asked.clear()
        await answered(service, ADA, f"{at(service, SHARED, 'ledger.md')}/{route}")
        trips[route] = sorted(asked)
    assert trips == {
        "related": ["get_rows"] * 2 + ["search_many"] * 2,
        "graph?depth=1": ["get_rows"] * 2 + ["search_many"] * 2,
        "graph?depth=3": ["get_rows"] * 2 + ["search_many"] * 3,
    }
