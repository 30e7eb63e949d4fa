"""The commit rule over any timing of the stages: order, what overlaps what, and what is given up."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from indexers.errors import PoisonRecord
from streams.batch import Record
from streams.context import AgentContext, AgentSpec
from streams.dlq import DeadLetters
from streams.health import Liveness, Readiness
from streams.hold import Holder
from streams.metrics import StreamMetrics
from streams.pipeline import Pipeline
from streams.producer import EventProducer
from streams.settings import AgentSettings, KafkaSettings
from streams.topics import Topics


def context_of(preparing: int) -> AgentContext:
    """Nothing is connected: these handlers send nothing."""
    metrics = StreamMetrics(CollectorRegistry(), agent="test")
    liveness, producer = Liveness(limit_seconds=60), EventProducer(KafkaSettings(), "127.0.0.1:1")
    return AgentContext(
        spec=AgentSpec(
            name="extract",
            topics=Topics(),
            kafka=KafkaSettings(),
            servers="127.0.0.1:1",
            settings=AgentSettings(),
            preparing=preparing,
        ),
        metrics=metrics,
        liveness=liveness,
        producer=producer,
        letters=DeadLetters(producer, "letters", agent="test", metrics=metrics),
        holder=Holder(metrics=metrics, liveness=liveness, readiness=Readiness(()), longest_pause=1),
    )


@dataclass
class Stages:
    """Batch n takes as many turns of the event loop in each stage as are given for it. `most`: at once in `prepare`."""

    turns: Sequence[tuple[int, int]]
    steps: list[tuple[str, int]] = field(default_factory=list)
    preparing: set[int] = field(default_factory=set)
    most: int = 0

    async def prepare(self, records: Sequence[Record]) -> int:
        batch = records[0].offset
        self.preparing.add(batch)
        self.most = max(self.most, len(self.preparing))
        for _ in range(self.turns[batch][0]):
            await asyncio.sleep(0)
        self.preparing.discard(batch)
        self.steps.append(("prepared", batch))
        return batch

    async def commit(self, prepared: int) -> None:
        self.steps.append(("commit", prepared))
        for _ in range(self.turns[prepared][1]):
            await asyncio.sleep(0)
        self.steps.append(("committed", prepared))

    def of(self, *names: str) -> list[tuple[str, int]]:
        return [step for step in self.steps if step[0] in names]


@contextlib.asynccontextmanager
async def fed(stages: Stages, preparing: int) -> AsyncIterator[Pipeline[int]]:
    async with asyncio.TaskGroup() as tasks:
        pipeline = Pipeline(stages, context_of(preparing), tasks)

        async def feed() -> None:
            for batch in range(len(stages.turns)):
                record = Record(topic="t", partition=0, offset=batch, key=None, value=b"", timestamp=0.0)
                stages.steps.append(("feed", batch))

                async def acknowledge(batch: int = batch) -> None:
                    stages.steps.append(("acknowledged", batch))

                await pipeline.feed([record], acknowledge)

        feeding = tasks.create_task(feed())
        yield pipeline
        feeding.cancel()


@given(
    turns=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8), preparing=st.integers(1, 3)
)
async def test_batches_are_stored_and_acknowledged_one_by_one_in_order(
    turns: list[tuple[int, int]], preparing: int
) -> None:
    stages = Stages(turns)
    async with fed(stages, preparing) as pipeline:
        async with asyncio.timeout(5):
            while len(stages.of("acknowledged")) < len(turns):  # noqa: ASYNC110 - turn by turn
                await asyncio.sleep(0)
        assert await pipeline.drain(1)
    assert stages.of("commit", "committed", "acknowledged") == [
        (step, batch) for batch in range(len(turns)) for step in ("commit", "committed", "acknowledged")
    ]
    assert stages.most <= preparing
    for batch in range(len(turns) - preparing):
        # So many may be on their way: one in the store, `preparing` before it.
        assert stages.steps.index(("commit", batch)) < stages.steps.index(("feed", batch + preparing))


@pytest.mark.parametrize("preparing", [1, 2])
async def test_as_many_as_said_are_prepared_beside_the_one_in_the_store(preparing: int) -> None:
    stages = Stages([(1, 50)] * 4)
    async with fed(stages, preparing) as pipeline:
        async with asyncio.timeout(5):
            while not stages.of("acknowledged"):  # noqa: ASYNC110 - turn by turn
                await asyncio.sleep(0)
        before = stages.steps[: stages.steps.index(("acknowledged", 0))]
        assert [batch for step, batch in before if step == "prepared"] == list(range(1 + preparing))
        await pipeline.drain(1)


async def test_a_pipeline_is_quiet_before_its_first_batch_and_since_its_last() -> None:
    stages = Stages([(1, 3)] * 2)
    async with fed(stages, 1) as pipeline:
        assert pipeline.idle_seconds == math.inf
        await asyncio.sleep(0)
        assert pipeline.idle_seconds == 0
        async with asyncio.timeout(5):
            while len(stages.of("acknowledged")) < 2:
                assert pipeline.idle_seconds == 0
                await asyncio.sleep(0)
        await pipeline.drain(1)
        await asyncio.sleep(0.001)
        assert 0 < pipeline.idle_seconds < 5


@given(
    turns=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6),
    preparing=st.integers(1, 2),
    after=st.integers(0, 60),
)
async def test_nothing_is_acknowledged_past_a_batch_that_was_given_up(
    turns: list[tuple[int, int]], preparing: int, after: int
) -> None:
    stages = Stages(turns)
    async with fed(stages, preparing) as pipeline:
        for _ in range(after):
            await asyncio.sleep(0)
        await pipeline.drain(0)
        pipeline.abandon()
        for _ in range(50):
            await asyncio.sleep(0)
    done = [batch for _, batch in stages.of("acknowledged")]
    assert done == list(range(len(done)))
    assert len(stages.of("commit")) - len(done) in (0, 1)


async def test_of_a_batch_that_holds_poison_the_records_are_done_one_by_one_in_its_turn() -> None:
    class Picky(Stages):
        async def prepare(self, records: Sequence[Record]) -> int:
            if len(records) > 1:
                raise PoisonRecord("not_json", "one of them")
            return await super().prepare(records)

    stages = Picky([(3, 3)] * 4)
    records = [Record(topic="t", partition=0, offset=n, key=None, value=b"", timestamp=0.0) for n in range(4)]

    async def acknowledge() -> None:
        stages.steps.append(("acknowledged", 0))

    async with asyncio.TaskGroup() as tasks:
        pipeline = Pipeline(stages, context_of(2), tasks)
        for batch in (records[:3], records[3:]):
            await pipeline.feed(batch, acknowledge)
        assert await pipeline.drain(5)
    assert stages.of("commit", "acknowledged") == [
        ("commit", 0), ("commit", 1), ("commit", 2), ("acknowledged", 0), ("commit", 3), ("acknowledged", 0),
    ]  # fmt: skip


async def test_each_batch_has_one_line_with_what_came_of_it() -> None:
    """Of two that are in work at once, each has its own counts, and all lines of a batch bear its id."""

    class Telling(Stages):
        async def prepare(self, records: Sequence[Record]) -> int:
            context.note(looked_at=len(records))
            return await super().prepare(records)

        async def commit(self, prepared: int) -> None:
            structlog.get_logger().info("told.on_the_way")
            await super().commit(prepared)
            context.note(indexed=prepared, older=0)

    context = context_of(2)
    batches = [
        [
            Record(topic="t", partition=n % 2, offset=n, key=None, value=b"text", timestamp=1.0)
            for n in range(3)
        ],
        [Record(topic="t", partition=0, offset=n, key=None, value=b"text", timestamp=1.0) for n in (7, 5)],
    ]
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        async with asyncio.TaskGroup() as tasks:
            pipeline = Pipeline(Telling([(2, 2)] * 8), context, tasks)
            for records in batches:
                await pipeline.feed(records, acknowledge_nothing)
            assert pipeline.in_work.keys() <= {("t", 0), ("t", 1)}
            assert await pipeline.drain(5)
    lines = [line for line in logged if line["event"] == "batch.committed"]
    assert [(line["offsets"], line["records"], line["outcomes"]) for line in lines] == [
        ({"t:0": "0-2", "t:1": "1-1"}, 3, {"looked_at": 3}),
        ({"t:0": "5-7"}, 2, {"looked_at": 2, "indexed": 7}),
    ]
    assert all(
        {"agent", "prepare_seconds", "wait_seconds", "commit_seconds"} <= line.keys() for line in lines
    )
    on_the_way = [line["batch"] for line in logged if line["event"] == "told.on_the_way"]
    assert on_the_way == [line["batch"] for line in lines]
    assert len(set(on_the_way)) == 2
    assert structlog.contextvars.get_contextvars() == {}


async def acknowledge_nothing() -> None:
    return
