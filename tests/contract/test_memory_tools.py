"""Memories written, followed and forgotten by MCP tools, client and commands; the agents carry them out."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from hopline.calls import InvalidRequest, NotAllowed, NotFound, OutOfStep
from hopline.client import AsyncHoplineClient, HoplineClient
from hopline.memory_calls import Memory, Statement
from indexers.domain.identity import Principal
from search_api.mcp.settings import McpSettings
from tests.api import key_of, over_uvicorn
from tests.conftest import Stack
from tests.mcp_clients import call, in_memory, over_http, over_stdio, refused
from tests.memory_api import ADA, BOB, EVE, READER, UNKNOWN, MemoryService, memory_service
from tests.pipeline import REPOSITORY

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]
T = TypeVar("T")
LEADS = {
    "subject": "Mirela Voss",
    "subject_label": "person",
    "type": "leads",
    "object": "Team Tally",
    "object_label": "team",
    "quote": "Mirela Voss leads Team Tally",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MemoryService]:
    folder = tmp_path_factory.mktemp("tools")
    async with memory_service(stack, folder, mcp=McpSettings()) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(world: MemoryService) -> AsyncIterator[str]:
    async with over_uvicorn(world.service.app) as address:
        yield address


async def carried_out(world: MemoryService, asking: Coroutine[Any, Any, T]) -> T:
    """The agents work while it is waited for."""
    task = asyncio.create_task(asking)
    while not task.done():
        await world.carry_out()
        await asyncio.sleep(0.02)
    return await task


async def hopline(who: Principal, url: str, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hopline", *arguments),
        env={k: v for k, v in os.environ.items() if not k.startswith("HOPLINE_")}
        | {"HOPLINE_API_URL": url, "HOPLINE_API_KEY": key_of(who), "PYTHONPATH": str(REPOSITORY)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("transport", ["memory", "http", "stdio"])
async def test_every_tool_from_a_memorys_writing_to_its_end(
    world: MemoryService, url: str, tmp_path: Path, transport: str
) -> None:
    """Over HTTP and standard input and output with the very configuration that the guide gives to agents."""
    opened = {
        "memory": lambda: in_memory(world.service, ADA),
        "http": lambda: over_http(url, ADA),
        "stdio": lambda: over_stdio(url, ADA, tmp_path),
    }[transport]()
    async with opened as client:

        async def write(**arguments: Any) -> dict[str, Any]:
            return await carried_out(world, call(client, "write_memory", **arguments))

        written = await write(
            content=f"부산 창고는 월요일에 쉽니다 ({transport}). Mirela Voss leads Team Tally.",
            title=f"부산 창고 {transport}",
            tags=["depot"],
            relations=[LEADS],
        )
        assert written["state"] in ("searchable", "extracted", "linked")
        doc_id = written["doc_id"]
        incident = f"INC-70{len(transport)}1"
        linking = await write(content=f"{incident}: see [[{written['path']}]].", title=f"Log {transport}")
        await world.carry_out()
        found = await call(client, "search", query=f"부산 창고 {transport}")
        assert found["documents"][0]["doc_id"] == doc_id
        assembled = await call(client, "context", query=f"부산 창고 {transport}", budget_tokens=300)
        assert f"({transport})" in assembled["text"]
        backlinks = (await call(client, "backlinks", doc_id=doc_id))["links"]
        assert [link["document"]["doc_id"] for link in backlinks] == [linking["doc_id"]]
        related = (await call(client, "related", doc_id=doc_id))["related"]
        assert linking["doc_id"] in {one["document"]["doc_id"] for one in related}
        card = await call(client, "entity", name=incident)
        assert [one["document"]["doc_id"] for one in card["mentions"]] == [linking["doc_id"]]
        again = await write(doc_id=doc_id, content=f"부산 창고는 화요일에 쉽니다 ({transport}).")
        assert (again["doc_id"], again["path"]) == (doc_id, written["path"])
        assert "화요일" in (await call(client, "read_file", doc_id=doc_id))["text"]
        [content] = (await client.read_resource(f"hopline://documents/{doc_id}")).contents
        assert "화요일" in content.text  # type: ignore[union-attr]
        gone = await carried_out(world, call(client, "forget", doc_id=doc_id))
        assert gone["doc_id"] == doc_id
        assert "No such document" in await refused(client, "read_file", doc_id=doc_id)
        assert "Ids come from search" in await refused(client, "forget", doc_id=doc_id)


async def test_an_entity_by_name_with_sentences_and_relations(world: MemoryService) -> None:
    async with in_memory(world.service, ADA) as client:
        content = "INC-7001 was about the depot gate. It was like INC-7002."
        written = await carried_out(world, call(client, "write_memory", content=content, scope="shared"))
        await world.carry_out()
        card = await call(client, "entity", name="INC-7001")
        assert (card["entity"]["name"], card["entity"]["label"]) == ("INC-7001", "incident")
        assert [mention["document"]["doc_id"] for mention in card["mentions"]] == [written["doc_id"]]
        assert card["mentions"][0]["sentence"] == "INC-7001 was about the depot gate."
        assert await call(client, "entity", name=card["entity"]["entity_id"]) == card | {"others": []}
        assert "No entity is called so" in await refused(client, "entity", name="zzyzx")
    async with in_memory(world.service, EVE) as client:
        assert "No entity is called so" in await refused(client, "entity", name=card["entity"]["entity_id"])


async def test_what_a_key_may_not_write_is_told(world: MemoryService, url: str) -> None:
    async with in_memory(world.service, ADA) as client:
        mine = await carried_out(
            world, call(client, "write_memory", content="ada's own marigold", scope="shared")
        )
        text = await refused(
            client, "write_memory", content="x", doc_type="memory", scope="team", team="sales"
        )
        assert "Correct this and call again" in text or "Don't try it again" in text
        assert "valid_from" in await refused(client, "write_memory", content="x", valid_from="yesterday")
    async with over_http(url, BOB) as client:
        assert "Don't try it again" in await refused(client, "forget", doc_id=mine["doc_id"])
        assert (await call(client, "read_file", doc_id=mine["doc_id"]))["text"]
    async with over_http(url, READER) as client:
        assert "Don't try it again" in await refused(client, "write_memory", content="x")
    async with over_http(url, EVE) as client:
        told = [await refused(client, "forget", doc_id=doc_id) for doc_id in (mine["doc_id"], UNKNOWN)]
        assert len({text.partition(" (request")[0] for text in told}) == 1


async def test_the_async_client_writes_follows_and_forgets(world: MemoryService, url: str) -> None:
    async with AsyncHoplineClient(url, key_of(ADA)) as client:
        said = Statement(
            subject="Petra",
            subject_label="person",
            type="owns",
            object="route-planner",
            object_label="service",
            quote="Petra owns route-planner",
        )
        done = await carried_out(
            world,
            client.write(
                "Petra owns route-planner, said the heliotrope.",
                wait_for="searchable",
                relations=[said],
                idempotency_key="once-only",
            ),
        )
        assert done.event.reached("searchable")
        assert not done.replayed
        again = await client.write(
            "Petra owns route-planner, said the heliotrope.", relations=[said], idempotency_key="once-only"
        )
        assert (again.doc_id, again.event_id, again.replayed) == (done.doc_id, done.event_id, True)
        with pytest.raises(OutOfStep):
            await client.write("another text", idempotency_key="once-only")
        assert (await carried_out(world, client.wait(done.event_id, "linked"))).state == "linked"
        assert [hit.doc_id async for hit in client.search_all("heliotrope", parts=["keyword"])] == [
            done.doc_id
        ]
        many = await client.write_many([Memory(content="lantern one"), Memory(content="lantern two")])
        assert len({one.doc_id for one in many}) == 2
        await world.carry_out()
        changed = await carried_out(
            world, client.update(many[0].doc_id, "lantern three", wait_for="searchable")
        )
        assert changed.doc_id == many[0].doc_id
        assert (await client.content(changed.doc_id)).text.rstrip().endswith("lantern three")
        await carried_out(world, client.forget(changed.doc_id, wait_for="ingested"))
        with pytest.raises(NotFound):
            await client.document(changed.doc_id)
        me = await client.whoami()
        assert (me.tenant, me.agent, me.teams) == ("acme", "ada", ["ops"])


async def test_the_blocking_client_does_the_same(world: MemoryService, url: str) -> None:
    def work() -> str:
        with HoplineClient(url, key_of(ADA)) as client:
            done = client.write("a blocking heliotrope", title="Blocking", wait_for="searchable")
            assert client.event(done.event_id).reached("searchable")
            assert client.wait(done.event_id, "ingested").path == done.path
            [second] = client.write_many([Memory(content="a second blocking one")])
            changed = client.update(done.doc_id, "a changed heliotrope", wait_for="searchable")
            assert client.content(changed.doc_id).text.rstrip().endswith("a changed heliotrope")
            with pytest.raises(InvalidRequest, match=r"body\.title"):
                client.write("x", title="t" * 300)
            with pytest.raises(NotFound):
                client.event(UNKNOWN)
            client.forget(second.doc_id, wait_for="ingested")
            client.forget(changed.doc_id, wait_for="ingested")
            return client.whoami().tenant

    assert await carried_out(world, asyncio.to_thread(work)) == "acme"

    def refused_() -> None:
        with HoplineClient(url, key_of(READER)) as client, pytest.raises(NotAllowed):
            client.write("x")

    await asyncio.to_thread(refused_)


async def test_the_commands_write_follow_and_forget(world: MemoryService, url: str) -> None:
    text = "구름 다리는 북쪽에 있다\n".encode()
    code, out, err = await carried_out(
        world,
        hopline(
            ADA,
            url,
            "write",
            "-",
            "--title",
            "구름 다리",
            "--scope",
            "shared",
            "--wait",
            "searchable",
            "--json",
            stdin=text,
        ),
    )
    assert (code, err) == (0, "")
    written = json.loads(out)
    assert written["event"]["state"] in ("searchable", "extracted", "linked")
    code, out, _ = await hopline(ADA, url, "events", written["event_id"])
    assert code == 0
    assert out.startswith(f"write of {written['path']}: ")
    assert [line.split()[-1] for line in out.splitlines()[1:3]] == ["accepted", "ingested"]
    refused_, late = await asyncio.gather(
        hopline(ADA, url, "write", "x", "--title", "t" * 300),
        hopline(ADA, url, "write", "waited for in vain", "--wait", "linked", "--timeout", "0.1"),
    )
    assert refused_[:2] == (2, "")
    assert refused_[2].startswith("hopline: --title: ")
    assert (late[0], late[2]) == (1, "")
    assert ": accepted (document " in late[1]
    code, out, _ = await carried_out(
        world, hopline(ADA, url, "forget", written["doc_id"], "--wait", "ingested")
    )
    assert code == 0
    code, out, err = await hopline(ADA, url, "forget", written["doc_id"])
    assert (code, out) == (1, "")
    assert "No such document" in err
