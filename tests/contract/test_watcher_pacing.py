"""A bulk waits for ingest at a real broker; a few edits don't. Who ingests is played: only what it commits counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from indexers.settings import VaultRoot
from streams.events import FileChange
from streams.settings import WatcherSettings
from streams.topics import Topics
from streams.watcher import service
from streams.watcher.pace import FIRST_RECORDS
from tests.conftest import Stack
from tests.watching import Watched, watched

pytestmark = pytest.mark.engines

FILES = 4 * FIRST_RECORDS


def write_many(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        (folder / f"note-{number:03d}.md").write_text(f"note {number}")


def roots(folder: Path) -> tuple[VaultRoot, VaultRoot]:
    found = tuple(VaultRoot(name=name, path=folder / name, tenant=name) for name in ("big", "small"))
    for root in found:
        root.path.mkdir()
    return found[0], found[1]


@asynccontextmanager
async def begun(vault: Watched, *, patience_seconds: float) -> AsyncIterator[None]:
    """The watcher, from its start; it must stop soon, whatever it waits for."""
    stop = asyncio.Event()
    config = replace(vault.config, watcher=WatcherSettings(bulk_patience_seconds=patience_seconds))
    task = asyncio.create_task(service.watch(config, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 5)


@asynccontextmanager
async def ingesting(vault: Watched, servers: str) -> AsyncIterator[AIOKafkaConsumer]:
    group = Topics(vault.config.prefix).group("ingest")
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)
    consumer.assign(list(vault.consumer.assignment()))
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def commit_all(ingest: AIOKafkaConsumer) -> None:
    await ingest.commit(await ingest.end_offsets(list(ingest.assignment())))


async def test_a_bulk_is_held_back_and_edits_pass_by(stack: Stack, prefix: str, tmp_path: Path) -> None:
    big, small = roots(tmp_path)
    write_many(big.path)
    async with (
        watched(stack, prefix, tmp_path, roots=(big, small)) as vault,
        ingesting(vault, stack.kafka_servers) as ingest,
    ):
        # Nobody ingests: it waits as long as the setting says, and goes on.
        async with begun(vault, patience_seconds=1):
            assert len({event.path for event in await vault.received_at_least(FILES)}) == FILES
        await commit_all(ingest)
        async with begun(vault, patience_seconds=60):
            assert len(await vault.received_at_least(FIRST_RECORDS)) == FIRST_RECORDS
            (small.path / "edit.md").write_text("of another tenant")
            (big.path / "edit.md").write_text("of the same vault")
            found = await vault.received_at_least(2)
            assert {(event.tenant_id, event.path) for event in found} == {
                ("big", "edit.md"),
                ("small", "edit.md"),
            }
            assert vault.status("big")["state"] == "scanning"
            rest: list[FileChange] = []
            while len(rest) < FILES - FIRST_RECORDS:
                await commit_all(ingest)
                rest += await vault.received_at_least(1)
            await vault.until_state("watching", "big")
        assert len({event.path for event in rest}) == len(rest) == FILES - FIRST_RECORDS
        # Told to stop in the middle of a bulk, it doesn't wait for ingest.
        await commit_all(ingest)
        async with begun(vault, patience_seconds=60):
            await vault.received_at_least(FIRST_RECORDS)
