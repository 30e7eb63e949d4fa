"""Deletions are remembered for as long as something older may come, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from indexers.event_rows import KEPT_DAYS, Followed, stage_row, stage_write
from indexers.opensearch.rows import Index
from indexers.settings import IndexingSettings
from streams.memory import memory_write
from streams.settings import WatcherSettings
from streams.watcher import service
from streams.watcher.tombstones import Tombstones
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack
from tests.echo_worker import until

pytestmark = pytest.mark.engines
LIFE = timedelta(days=IndexingSettings().tombstone_days)


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    roots = [
        vault_root(tmp_path),
        vault_root(tmp_path, "bob", agent="bob"),
        vault_root(tmp_path, "blue", scope="team", team="blue"),
    ]
    async with opened_rig(agent_config(stack, prefix, roots)) as opened:
        yield opened


async def paths(rig: Rig) -> tuple[list[str], int]:
    """All document rows, tombstones too, and the number of gate rows."""
    documents = (await rig.rows(Index.DOCUMENTS)).values()
    return sorted(row["path"] for row in documents), len(await rig.rows(Index.GATE))


def at(moment: datetime, rig: Rig, **more: Any) -> Tombstones:
    return Tombstones(gate=rig.gate, now=lambda: moment, **more)


def replace_ingest(rig: Rig, now: Callable[[], datetime]) -> Rig:
    """The same agents, ingest by another clock."""
    return replace(rig, ingest=replace(rig.ingest, now=now))


async def deleted(rig: Rig, *names: str, **where: Any) -> None:
    await rig.feed(*(rig.saved(name, name, **where) for name in names))
    await rig.feed(*(rig.removed(name, **where) for name in names))


async def test_expired_tombstones_go_and_nothing_else(rig: Rig) -> None:
    bob, blue = rig.config.roots[1:]
    await deleted(rig, "gone.md", "back.md", "later.md")
    await deleted(rig, "theirs.md", root=bob)
    await deleted(rig, "team.md", root=blue)
    await rig.feed(rig.saved("kept.md", "[[gone]]"), rig.saved("back.md", "again"))
    now = datetime.now(UTC)
    await replace_ingest(rig, lambda: now + timedelta(days=9)).feed(rig.removed("later.md"))
    before = await paths(rig)
    assert before == (["back.md", "gone.md", "kept.md", "later.md", "team.md", "theirs.md"], 6)
    assert await at(now + LIFE - timedelta(minutes=5), rig).purge(rig.home) == 0
    assert await paths(rig) == before
    assert await at(now + LIFE + timedelta(minutes=5), rig).purge(rig.home) == 1
    assert await paths(rig) == (["back.md", "kept.md", "later.md", "team.md", "theirs.md"], 5)
    assert await at(now + LIFE + timedelta(minutes=5), rig).purge(blue.namespace) == 1
    assert await paths(rig) == (["back.md", "kept.md", "later.md", "theirs.md"], 4)
    assert await rig.edges() == {("kept.md", "gone", None, False)}
    await rig.feed(rig.saved("gone.md", "a new one"))
    assert await rig.edges() == {("kept.md", "gone", "gone.md", False)}


async def test_a_purge_is_bounded_and_goes_on_at_the_next_scan(rig: Rig) -> None:
    await deleted(rig, *(f"{n}.md" for n in range(5)))
    tombstones = at(datetime.now(UTC) + LIFE + timedelta(minutes=5), rig, most=2)
    assert [await tombstones.purge(rig.home) for _ in range(4)] == [2, 2, 1, 0]
    assert await paths(rig) == ([], 0)


async def test_the_watcher_purges_after_its_scan(rig: Rig, tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - LIFE - timedelta(minutes=5)
    await deleted(replace_ingest(rig, lambda: long_ago), "gone.md")
    config = service.WatcherConfig(
        prefix=rig.config.prefix, roots=(rig.root,), kafka=rig.config.kafka, status_folder=tmp_path / "status",
        kafka_servers=rig.config.kafka_servers, opensearch=rig.config.opensearch, indexing=rig.config.indexing,
        opensearch_url=rig.config.opensearch_url, watcher=WatcherSettings(),
    )  # fmt: skip
    stop = asyncio.Event()
    watching = asyncio.create_task(service.watch(config, stop=stop))

    async def purged() -> bool:
        return await paths(rig) == ([], 0)

    await until(purged, seconds=20, what="the purge")
    stop.set()
    await asyncio.wait_for(watching, 20)


async def test_a_late_update_between_two_deletions_brings_nothing_back(rig: Rig) -> None:
    """The newer deletion raises the tombstone, however little there is to delete."""
    first = rig.saved("a.md", "one")
    deletion = rig.removed("a.md")
    between = rig.saved("a.md", "two")
    again = rig.removed("a.md")
    await rig.feed(first)
    await rig.feed(deletion)
    await rig.feed(again)
    await rig.feed(between)
    await rig.embed_all()
    assert await rig.documents() == {}
    assert await rig.verified() == {}


async def test_rows_of_events_go_once_the_log_has_dropped_them(rig: Rig) -> None:
    memory = structs.replace(memory_write(rig.home, "noted", version=rig.clock.next()), tracked=True)
    other = structs.replace(memory_write(rig.home, "later", version=rig.clock.next()), tracked=True)
    await rig.feed(rig.written(memory))
    now = datetime.now(UTC)
    fresh = stage_row(
        Followed(event_id=other.event_id, document=other.document, version=1),
        "accepted",
        (now + timedelta(days=3)).isoformat(),
    )
    await rig.gate.write([stage_write(fresh)])
    assert set(await rig.rows(Index.EVENTS)) == {f"{memory.event_id}/ingested", other.event_id}
    week = timedelta(days=KEPT_DAYS)
    assert await at(now + week - timedelta(minutes=5), rig).purge_events(rig.home.tenant_id) == 0
    tombstones = at(now + week + timedelta(minutes=5), rig)
    assert await tombstones.purge(rig.home) == 0
    assert set(await rig.rows(Index.EVENTS)) == {other.event_id}
