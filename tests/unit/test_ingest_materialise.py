"""Memory writes become files side by side: in real folders, of which one may be away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from indexers.domain.identity import TenantId
from indexers.errors import PoisonRecord
from indexers.settings import IndexingSettings, VaultRoot
from indexers.vault.tree import VaultTree
from streams.agents.ingest.content import content_of
from streams.agents.ingest.decode import Arrival
from streams.agents.ingest.materialise import Materialise
from streams.agents.ingest.memories import Memories
from streams.agents.ingest.plan import Sight
from streams.agents.vaults import Vaults
from streams.batch import Record
from streams.context import AgentContext, AgentSpec
from streams.dlq import DeadLetters
from streams.event_fields import new_event_fields
from streams.events import MemoryWrite
from streams.health import Liveness, Readiness
from streams.hold import Holder
from streams.metrics import StreamMetrics
from streams.producer import EventProducer
from streams.settings import AgentSettings, KafkaSettings
from streams.topics import Topics

WRITES = 12


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def context_of(clock: Callable[[], float]) -> AgentContext:
    """Nothing is connected: files alone are written."""
    metrics, producer = StreamMetrics(CollectorRegistry(), agent="test"), EventProducer(KafkaSettings(), "")
    liveness = Liveness(limit_seconds=60, clock=clock)
    return AgentContext(
        spec=AgentSpec(
            name="ingest", topics=Topics(), kafka=KafkaSettings(), servers="", settings=AgentSettings()
        ),
        metrics=metrics,
        liveness=liveness,
        producer=producer,
        letters=DeadLetters(producer, "letters", agent="test", metrics=metrics),
        holder=Holder(metrics=metrics, liveness=liveness, readiness=Readiness(()), longest_pause=0.1),
    )


def sights(root: VaultRoot, vaults: Vaults) -> list[Sight]:
    """Writes that came in one batch."""
    found = []
    for number in range(WRITES):
        event = MemoryWrite(
            **new_event_fields(root.namespace),
            version=number + 1,
            path=f"memories/{number}.md",
            title=None,
            content=f"Number {number}.",
        )
        record = Record(topic=root.name, partition=0, offset=number, key=b"", value=b"", timestamp=0.0)
        arrival = Arrival.of(record, event)
        content = content_of(arrival, vaults, 4_096)
        found.append(Sight(arrival=arrival, content=content, memories=(event,)))
    return found


@asynccontextmanager
async def opened(
    roots: Sequence[VaultRoot], *, patience: float = 600.0
) -> AsyncIterator[tuple[Materialise, Clock]]:
    clock = Clock()
    vaults = Vaults(files=VaultTree(roots), patience_seconds=patience)
    with ThreadPoolExecutor(max_workers=4) as writers:
        memories = Memories(vaults=vaults, settings=IndexingSettings())
        yield Materialise(context=context_of(clock), memories=memories, writers=writers), clock


@pytest.fixture
def near(tmp_path: Path) -> VaultRoot:
    (tmp_path / "near").mkdir()
    return VaultRoot(name="near", path=tmp_path / "near", tenant=TenantId("near"))


@pytest.fixture
def away(tmp_path: Path) -> VaultRoot:
    return VaultRoot(name="away", path=tmp_path / "away", tenant=TenantId("away"))


def files_in(root: VaultRoot) -> set[str]:
    return {path.name for path in root.path.glob("memories/*.md")}


async def test_writes_of_a_vault_that_is_away_are_awaited_together(near: VaultRoot, away: VaultRoot) -> None:
    async with opened([near, away]) as (materialise, _):
        vaults = materialise.memories.vaults
        batch = [*sights(away, vaults), *sights(near, vaults)]
        with capture_logs() as lines:
            writing = asyncio.create_task(materialise.all(batch, {}))
            async with asyncio.timeout(10):
                while len(files_in(near)) < WRITES or len(lines) < 3:  # noqa: ASYNC110 - files tell nobody
                    await asyncio.sleep(0.01)
            away.path.mkdir()
            written = await writing
    assert len(written.carried) == 2 * WRITES
    assert files_in(away) == files_in(near) == {f"{number}.md" for number in range(WRITES)}
    held = [line["attempt"] for line in lines if line["event"] == "batch.held"]
    assert held == sorted(set(held))


async def test_a_vault_that_is_away_for_too_long_refuses_its_own_writes_alone(
    near: VaultRoot, away: VaultRoot
) -> None:
    async with opened([near, away], patience=0.0) as (materialise, _):
        vaults = materialise.memories.vaults
        refused, taken = sights(away, vaults), sights(near, vaults)
        written = await materialise.all([*refused, *taken], {})
        assert set(written.refused) == {sight.arrival.record.place for sight in refused}
        assert set(written.carried) == {sight.arrival.record.place for sight in taken}
        away.path.mkdir()
        with pytest.raises(PoisonRecord, match="vault_unavailable"):
            materialise.carried(written, refused[0], refused[0].memories[0], None)


async def test_each_file_is_progress(near: VaultRoot) -> None:
    async with opened([near]) as (materialise, clock):
        clock.seconds = 100.0
        await materialise.all(sights(near, materialise.memories.vaults), {})
        assert materialise.context.liveness.verdict().details["seconds_since_progress"] == 0
