"""A second generation of chunks, filled, searched and dropped while the agents write: nothing lost, mixed or kept."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import pytest

from hopline.local.ports import free_ports
from indexers.domain.identity import Principal, chunk_id
from indexers.embedders.factory import load_embedder
from indexers.errors import ConfigurationError, HoplineError
from indexers.opensearch.connect import connect, request
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index
from indexers.settings import EmbedderSettings, OpenSearchSettings
from search_api.erasure.stores import count_rows
from streams.agents.config import AgentConfig
from streams.agents.embed import EmbedHandler, next_reindex
from streams.batch import Record
from streams.event_fields import new_event_fields
from streams.events import MemoryChanged, encode
from streams.reindex.comparing import compared_sides
from streams.reindex.steps import Reindex
from streams.settings import AgentSettings
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.api import principal, running_service
from tests.conftest import Stack
from tests.handlers import context_of, embed_handler, shipped_embedder
from tests.model_folders import half_model
from tests.store import chunk_row

pytestmark = pytest.mark.engines

ADA = principal("acme")
NOTES = {
    "ferry.md": "# The ferry\n\nThe ferry to the island sails at nine.\n\n## Winter\n\nIn winter it sails at ten.\n",
    "harbour.md": "# Harbour\n\nCranes unload the coal ships.\n",
    "lantern.md": "# Lantern\n\nA lantern keeper watches the strait.\n",
    "secret.md": "# Secret\n\nOrla Mint hid the tidewheel.\n",
    "mill.md": "# Mill\n\nThe mill grinds barley.\n",
}


@dataclass(kw_only=True)
class World:
    """Agents driven by hand: embed's own group for the old generation, and the second for the new one."""

    rig: Rig
    folder: Path
    work: Reindex
    old: EmbedHandler
    second: EmbedHandler | None = None
    executor: ThreadPoolExecutor

    @property
    def gate(self) -> Gate:
        return self.rig.gate

    @property
    def target(self) -> EmbedderSettings:
        return EmbedderSettings(model=str(self.folder))

    async def begin(self) -> int:
        fed = await self.work.begin(self.target)
        config, model = self.rig.config, load_embedder(self.target)
        context = context_of(config, "embed", self.rig.embed.context.producer)
        self.second = embed_handler(config, self.gate.of_chunks(fed.number), context, model, self.executor)
        self.second.chunker = None if fed.made_by is None else fed.made_by.chunker
        return fed.number

    async def written(self, *records: Record) -> None:
        """Through ingest, and both groups of embed."""
        await self.rig.feed(*records)
        words = await self.rig.announced()
        for handler in (self.old, self.second):
            if handler is not None:
                await handler.commit(await handler.prepare(words))

    async def chunks(self, number: int, tenant: Principal = ADA) -> set[tuple[str, int, str]]:
        """(path, version, model) of its rows."""
        view = self.gate.of_chunks(number)
        await view.refresh(Index.CHUNKS)
        everybody = Principal.pipeline(tenant.tenant_id)
        rows = [row.source async for row in view.scan(everybody, Index.CHUNKS, {"match_all": {}})]
        paths = {row["doc_id"]: row["path"] for row in (await self.rig.rows(Index.DOCUMENTS)).values()}
        return {(paths.get(r["doc_id"], "?"), r["version"], r["model_id"]) for r in rows}

    def erased(self, path: str) -> Record:
        event = MemoryChanged(
            **new_event_fields(self.rig.home),
            version=self.rig.clock.next(),
            path=path,
            kind="erased",
            by="ada",
        )
        return self.rig.record(encode(event), topic=self.rig.config.topics.memory_writes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return half_model(tmp_path_factory.mktemp("model"))


@contextlib.asynccontextmanager
async def opened_world(config: AgentConfig, folder: Path) -> AsyncIterator[World]:
    async with opened_rig(config) as rig:
        with ThreadPoolExecutor(max_workers=3) as executor:
            context = context_of(config, "embed", rig.embed.context.producer)
            old = embed_handler(config, rig.gate.of_chunks(1), context, shipped_embedder(), executor)
            work = Reindex(
                config=config, gate=rig.gate, say=lambda _line: None, patience_seconds=10, settle_seconds=0
            )
            yield World(rig=rig, folder=folder, work=work, old=old, executor=executor)


@pytest.fixture
async def world(stack: Stack, prefix: str, tmp_path: Path, folder: Path) -> AsyncIterator[World]:
    async with opened_world(agent_config(stack, prefix, [vault_root(tmp_path)]), folder) as world:
        await world.written(*(world.rig.saved(path, text) for path, text in NOTES.items()))
        yield world


def paths(rows: set[tuple[str, int, str]]) -> set[str]:
    return {path for path, _, _ in rows}


async def test_what_is_written_edited_deleted_and_erased_meanwhile_is_so_in_both(world: World) -> None:
    rig = world.rig
    assert await rig.verified() == {}
    number = await world.begin()
    # Before the copy comes to it: an edit, an end, an erasure and a new note.
    await world.written(
        rig.saved("ferry.md", "# The ferry\n\nIt sails at noon.\n"),
        rig.removed("harbour.md"),
        world.erased("secret.md"),
        rig.saved("new.md", "# New\n\nA heliotrope blooms.\n"),
    )
    assert await rig.verified() == {}
    report = await world.work.fill()
    assert (report.embedded, report.unread, report.refused) == (0, [], [])
    # And after it.
    await world.written(
        rig.saved("mill.md", "# Mill\n\nIt grinds rye now.\n"), *rig.moved("new.md", "old.md", "# N\n")
    )
    old, new = await world.chunks(1), await world.chunks(number)
    assert {(path, version) for path, version, _ in new} == {(path, version) for path, version, _ in old}
    assert paths(new) == {"ferry.md", "lantern.md", "mill.md", "old.md"}
    assert {model for _, _, model in new} == {"e5-half-int8"}
    await world.gate.serve_generation(number)
    assert await rig.verified() == {}
    await world.gate.serve_generation(1)
    assert await rig.verified() == {}


async def test_nothing_of_an_erased_document_stays_uncounted_or_for_good(world: World) -> None:
    """A copy that was killed between writing and looking again leaves rows of what was erased meanwhile."""
    number = await world.begin()
    await world.work.fill()
    home, doc_id = world.rig.home, world.rig.home.document("secret.md").doc_id
    await world.written(world.erased("secret.md"))
    row = chunk_row(home, doc_id=doc_id, vector=[0.5] * 192)
    write = RowWrite(
        principal=home.principal,
        index=Index.CHUNKS,
        row_id=chunk_id(doc_id, 7),
        action="index",
        row=row,
        version=1,
    )
    await world.gate.of_chunks(number).write([write])
    await world.gate.everywhere.refresh(Index.CHUNKS)
    assert (await count_rows(world.gate, home.tenant_id, [doc_id]))["chunks"] == 1
    assert (await world.work.fill()).swept == 0
    await world.gate.everywhere.refresh(Index.CHUNKS)
    assert (await count_rows(world.gate, home.tenant_id, [doc_id]))["chunks"] == 0


async def test_searches_go_on_over_swap_rollback_and_finish_each_within_one_space(
    world: World, stack: Stack, tmp_path: Path
) -> None:
    """The new space has other dimensions: a vector of one asked of the other is refused by the engine."""
    prefix = world.rig.config.prefix
    models: list[str] = []
    failures: list[str] = []
    over = asyncio.Event()
    async with running_service(
        stack.opensearch_url,
        tmp_path,
        principals=[ADA],
        prefix=prefix,
        kafka_servers=stack.kafka_servers,
        keep=True,
    ) as service:

        async def ask() -> None:
            number = 0
            while not over.is_set():
                number += 1
                body = {"query": f"who keeps the lantern {number % 7}", "explain": True, "parts": ["vector"]}
                answer = await service.post(ADA, body)
                if answer.status_code != 200 or not answer.json()["hits"]:
                    failures.append(answer.text)
                else:
                    models.append(answer.json()["trace"]["embedding_model"])

        asking = [asyncio.create_task(ask()) for _ in range(2)]
        try:
            number = await world.begin()
            await world.work.fill()
            for generation, model in ((number, "half"), (1, "enko"), (number, "half")):
                await world.gate.serve_generation(generation)
                await until(lambda m=model: bool(models) and m in models[-1])  # type: ignore[misc]
            # What began before has its answer (`Reindex.finish` waits for seconds).
            await more_than(models, 4)
            await world.gate.drop_generation(1)
            await more_than(models, 4)
        finally:
            over.set()
            await asyncio.gather(*asking)
    assert failures == []
    assert set(models) == {"e5-small-enko-int8", "e5-half-int8"}


async def more_than(models: list[str], count: int) -> None:
    before = len(models)
    await until(lambda: len(models) > before + count)


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)


async def test_the_second_group_waits_for_a_reindex_and_answers_its_probes(world: World) -> None:
    """Kubernetes starts a worker that ended again at once: without `--wait` its pods would be in a crash loop."""
    port = free_ports()
    config = replace(world.rig.config, agent=AgentSettings(http_port=port))
    waiting = asyncio.create_task(next_reindex(config))
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for path in ("/livez", "/readyz"):
            answer = await asked(client, path)
            assert answer.status_code == 200
            assert "none is open" in answer.json()["reason"]
        assert "hopline_build_info" in (await client.get("/metrics")).text
    assert not waiting.done()
    number = await world.begin()
    async with asyncio.timeout(30):
        assert await waiting == number


async def asked(client: httpx2.AsyncClient, path: str) -> httpx2.Response:
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(httpx2.ConnectError):
                return await client.get(path)
            await asyncio.sleep(0.05)


async def test_each_step_may_be_killed_and_called_again(world: World) -> None:
    work = world.work
    with pytest.raises(HoplineError, match="no reindex is open"):
        await work.fill()
    assert not await work.abort()
    number = await world.begin()
    with pytest.raises(ConfigurationError, match="a reindex to e5-half-int8 is open"):
        await work.begin(replace_model(world, "e5-third-int8"))
    assert await world.begin() == number
    await work.fill()
    with pytest.raises(HoplineError, match="hopline agent embed --reindex"):
        await work.swap()
    with pytest.raises(HoplineError, match="--swap first, or --abort"):
        await work.finish()
    await world.gate.serve_generation(number)
    assert not await work.swap()
    with pytest.raises(HoplineError, match="--rollback first"):
        await work.abort()
    assert await work.rollback()
    assert not await work.rollback()
    assert await work.abort()
    assert not await work.abort()
    assert await world.rig.verified() == {}
    number = await world.begin()
    await work.fill()
    await world.gate.serve_generation(number)
    with pytest.raises(ConfigurationError, match=f"HOPLINE_EMBEDDER__MODEL still names.*{world.folder}"):
        await work.finish()
    named = replace(work, config=replace(work.config, embedder=world.target))
    # As if killed after the old generation was dropped.
    await world.gate.drop_generation(1)
    assert (await named.status())["state"] == "closing"
    assert await named.finish()
    assert not await named.finish()
    assert (await named.status())["state"] == "none"
    # A process that still has the former model takes what the index says; one of a third model is refused.
    assert await world.rig.verified() == {}
    with pytest.raises(ConfigurationError, match=f"set HOPLINE_EMBEDDER__MODEL to {world.folder}"):
        await world.gate.ensure_indices(dimension=9, pair_id="third")


def replace_model(world: World, name: str) -> EmbedderSettings:
    return EmbedderSettings(model=str(half_model(world.folder.parent / name, name=name)))


async def test_a_tenant_with_indices_of_its_own_comes_along(
    stack: Stack, prefix: str, tmp_path: Path, folder: Path
) -> None:
    roots = [vault_root(tmp_path), vault_root(tmp_path, "big", tenant="umbra")]
    settings = OpenSearchSettings(url=stack.opensearch_url, dedicated_tenants={"umbra": "big"})
    config = replace(agent_config(stack, prefix, roots), opensearch=settings)
    async with opened_world(config, folder) as world:
        rig = world.rig
        saved = [rig.saved(path, NOTES[path], root=r) for r in roots for path in ("mill.md", "ferry.md")]
        await world.written(*saved)
        number = await world.begin()
        client = connect(settings, stack.opensearch_url)
        # Killed while the generation was made: one index is there, the other isn't.
        await request(client, "DELETE", f"/{prefix}-chunks-big-v1@{number}")
        assert await world.begin() == number
        await world.work.fill()
        await world.work.gate.serve_generation(number)
        answer = await request(client, "GET", f"/{prefix}-chunks*/_alias")
        await client.close()
        plain = {name for name, one in answer.items() if any("@" not in alias for alias in one["aliases"])}
        assert plain == {f"{prefix}-chunks-v1@{number}", f"{prefix}-chunks-big-v1@{number}"}
        for tenant in ("acme", "umbra"):
            [row, *_] = (await rig.rows(Index.CHUNKS, tenant)).values()
            assert row["model_id"] == "e5-half-int8"


async def test_both_are_asked_the_same_and_compared(world: World) -> None:
    await world.begin()
    await world.work.fill()
    figures = await compared_sides(world.work, count=4, gold=None)
    assert figures["queries"] == 4
    assert 0.5 <= figures["overlap@10"] <= 1
    judged = await compared_sides(world.work, count=0, gold={"who keeps the lantern": {"lantern.md": 1.0}})
    assert (judged["recall@10_old"], judged["recall@10_new"]) == (1, 1)
