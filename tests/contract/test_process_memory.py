"""Memory of the processes themselves, as `hopline` starts them, with the settings' defaults."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from indexers.opensearch.rows import Index
from streams.producer import OutgoingRecord
from tests.agents import agent_config, opened_rig, vault_root
from tests.conftest import Stack
from tests.echo_worker import until
from tests.memory import measured_growth
from tests.pipeline import Pipeline, running
from tests.watching import watched

pytestmark = pytest.mark.engines
LIMIT = 200 * 2**20
DUMP = " ".join(f"gauge {number:06d} reads low." for number in range(260_000)).encode()


def process(stack: Stack, prefix: str, folder: Path, vault: Path, **more: str) -> Pipeline:
    data = folder / "data"
    data.mkdir()
    root = {"name": "main", "path": str(vault), "tenant": "acme", "agent": "ada"}
    return Pipeline(
        prefix=prefix,
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=data,
        vaults=[root],
        settings=more,
    )


async def test_c07_memory_of_the_ingest_process(stack: Stack, prefix: str, tmp_path: Path) -> None:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as rig:
        (rig.root.path / "dump.md").write_bytes(DUMP)
        records = [rig.told("dump.md", None), rig.saved("small.md", "a heliotrope")]
        width = {"HOPLINE_KAFKA__PARTITIONS": str(rig.config.kafka.partitions)}
        pipeline = process(stack, prefix, tmp_path, rig.root.path, **width)
        with running(pipeline):
            await asyncio.to_thread(pipeline.start, "ingest")
            with measured_growth(pipeline.processes["ingest"].pid) as growth:
                await rig.ingest.context.send(
                    [OutgoingRecord(topic=r.topic, key=r.key, value=r.value) for r in records]
                )

                async def indexed() -> bool:
                    return len(await rig.rows(Index.GATE)) == 2

                await until(indexed, seconds=60, what="both gate rows")
            await asyncio.to_thread(pipeline.stop, "ingest")
        assert await rig.found("heliotrope") == ["small.md"]
        cap = rig.config.indexing.document_max_bytes
        assert (await rig.documents())["dump.md"]["left_out_bytes"] == len(DUMP) - cap
        assert 0 < growth.bytes <= LIMIT


async def test_c07_memory_of_the_watcher_process(stack: Stack, prefix: str, tmp_path: Path) -> None:
    async with watched(stack, prefix, tmp_path) as vault:
        pipeline = process(stack, prefix, tmp_path, vault.root)
        with running(pipeline):
            await asyncio.to_thread(pipeline.start, "watch")
            with measured_growth(pipeline.processes["watch"].pid) as growth:
                (vault.root / "dump.md").write_bytes(DUMP)
                (vault.root / "small.md").write_text("heliotrope")
                events = {e.path: e for e in await vault.received_at_least(2)}
            await asyncio.to_thread(pipeline.stop, "watch")
        assert (events["dump.md"].content, events["dump.md"].size) == (None, len(DUMP))
        assert events["small.md"].content == b"heliotrope"
        assert growth.bytes <= LIMIT
