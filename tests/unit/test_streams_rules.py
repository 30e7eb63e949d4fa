"""The pure rules of the stream runtime: cutting batches, pauses, liveness, dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from dirty_equals import IsStr
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from indexers.backoff import full_jitter
from indexers.errors import PoisonRecord, Transient
from streams.batch import BatchSizes, Poisoned, Record, poison_run, split_by_bytes
from streams.connect import DEAD_LETTER_FACTOR, KafkaConnection
from streams.context import AgentSpec
from streams.dlq import LetterFilter, letter_of, refusal, tenant_of
from streams.events import DeadLetter, decode, encode
from streams.faust_app import member_name
from streams.health import Liveness, Readiness, Verdict
from streams.hold import Holder
from streams.lag import PartitionLag
from streams.metrics import DEPENDENCIES, ERROR_CLASSES, StreamMetrics
from streams.settings import AgentSettings, KafkaSettings
from streams.topics import Topics


def record(value: bytes | None = b"v", *, key: bytes | None = b"k", offset: int = 0) -> Record:
    return Record(topic="t", partition=0, offset=offset, key=key, value=value, timestamp=1.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@given(sizes=st.lists(st.integers(0, 200)), limit=st.integers(1, 300))
def test_cutting_keeps_every_record_in_order_and_the_limit(sizes: Sequence[int], limit: int) -> None:
    records = [record(b"x" * size, key=None, offset=n) for n, size in enumerate(sizes)]
    parts = list(split_by_bytes(records, limit))
    assert [r for part in parts for r in part] == records
    assert all(part for part in parts)
    assert all(sum(r.size for r in part) <= limit for part in parts if len(part) > 1)


def test_batches_of_a_burst_grow_from_few_records_to_the_most() -> None:
    sizes = BatchSizes(first=16, most=200)
    assert [_full(sizes) for _ in range(6)] == [16, 32, 64, 128, 200, 200]
    sizes.restart()
    assert [_full(sizes) for _ in range(2)] == [16, 32]


def test_batches_of_a_trickle_do_not_grow() -> None:
    sizes = BatchSizes(first=16, most=200)
    for records in (1, 3, 15, 1):
        sizes.taken(records)
    assert _full(sizes) == 16


def _full(sizes: BatchSizes) -> int:
    size = sizes.next
    sizes.taken(size)
    return size


@pytest.mark.parametrize("first", [8, 16, 1_000])
def test_no_batch_is_larger_than_the_most(first: int) -> None:
    sizes = BatchSizes(first=first, most=8)
    assert [_full(sizes) for _ in range(3)] == [8, 8, 8]


@given(
    attempt=st.integers(1, 10_000),
    longest=st.floats(0.1, 60),
    jitter=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.floats(0, 100),
)
def test_a_pause_is_bounded_and_respects_what_was_asked(
    attempt: int, longest: float, jitter: float, asked: float | None
) -> None:
    pause = full_jitter(attempt, base_seconds=0.1, cap_seconds=longest, jitter=jitter, at_least=asked or 0.0)
    assert (asked or 0) <= pause <= max(longest, asked or 0)


async def test_a_dependency_is_held_until_nobody_waits_for_it() -> None:
    metrics = StreamMetrics(CollectorRegistry(), agent="test")
    readiness, liveness = Readiness(()), Liveness(limit_seconds=60)
    holder = Holder(metrics=metrics, liveness=liveness, readiness=readiness, longest_pause=0.01)
    back = {"prepare": False, "commit": False}

    async def call(stage: str) -> str:
        await asyncio.sleep(0)
        if not back[stage]:
            raise Transient("away")
        return stage

    def held() -> float | None:
        return metrics.registry.get_sample_value("hopline_stream_held", {"dependency": "opensearch"})

    waiting = {s: asyncio.create_task(holder.hold("opensearch", lambda s=s: call(s))) for s in back}  # type: ignore[misc]
    await asyncio.sleep(0.02)
    seen = [held()]
    for stage, task in waiting.items():
        back[stage] = True
        await asyncio.wait_for(task, 5)
        seen.append(held())
    assert seen == [1.0, 1.0, 0.0]


def test_one_good_record_ends_a_run_of_poison() -> None:
    assert poison_run(40, records=10, parked=10) == 50
    assert poison_run(40, records=10, parked=9) == 0


class TestLiveness:
    def test_no_work_is_alive_however_long(self) -> None:
        clock = Clock()
        liveness = Liveness(limit_seconds=60, clock=clock)
        liveness.waiting(0)
        clock.now += 10_000
        assert (liveness.verdict().ok, liveness.verdict().reason) == (True, "nothing to do")

    def test_waiting_work_that_does_not_move_is_dead(self) -> None:
        clock = Clock()
        liveness = Liveness(limit_seconds=60, clock=clock)
        clock.now += 10_000
        liveness.waiting(5)
        assert liveness.verdict().ok, "work has just come"
        clock.now += 61
        liveness.waiting(7)
        assert liveness.verdict() == Verdict(
            ok=False,
            reason="work is waiting and nothing moved for 61 s",
            details={"seconds_since_progress": 61.0, "waiting_records": 7, "holding_on": []},
        )

    def test_a_batch_in_flight_that_does_not_end_is_dead(self) -> None:
        clock = Clock()
        liveness = Liveness(limit_seconds=60, clock=clock)
        liveness.begin()
        clock.now += 61
        assert not liveness.verdict().ok
        liveness.moved()
        assert liveness.verdict().ok
        liveness.end()
        clock.now += 61
        assert liveness.verdict().ok

    def test_holding_is_alive_as_long_as_it_is_tried(self) -> None:
        clock = Clock()
        liveness = Liveness(limit_seconds=60, clock=clock)
        liveness.begin()
        for _ in range(100):
            clock.now += 30
            liveness.tried("opensearch")
        assert liveness.verdict().reason == "waiting for opensearch"
        clock.now += 61
        assert not liveness.verdict().ok, "it no longer tries"

    def test_an_answer_ends_the_hold(self) -> None:
        clock = Clock()
        liveness = Liveness(limit_seconds=60, clock=clock)
        liveness.begin()
        clock.now += 61
        liveness.tried("opensearch")
        liveness.reached("opensearch")
        assert (liveness.verdict().ok, liveness.holding_on) == (True, [])


def test_ready_when_all_conditions_were_met_and_not_after_a_loss() -> None:
    readiness = Readiness(("assignment", "opensearch"))
    readiness.met("opensearch")
    assert readiness.verdict() == Verdict(
        ok=False,
        reason="not yet: assignment",
        details={"conditions": {"assignment": False, "opensearch": True}},
    )
    readiness.met("assignment")
    assert readiness.verdict().ok
    readiness.met("assignment", value=False)
    assert not readiness.verdict().ok


@pytest.mark.parametrize(
    ("committed", "start", "end", "lag"),
    [(None, 0, 5, 5), (3, 0, 5, 2), (5, 0, 5, 0), (1, 4, 9, 5), (None, 4, 4, 0)],
)
def test_lag_counts_what_is_kept(committed: int | None, start: int, end: int, lag: int) -> None:
    part = PartitionLag(topic="t", partition=0, committed=committed, start=start, end=end)
    assert part.lag == lag


@pytest.mark.parametrize(
    ("value", "key", "tenant"),
    [
        pytest.param(b'{"tenant_id":"T1"}', b"T2/a/shared/x.md", "T1", id="the value speaks"),
        pytest.param(b"\x00\xff", b"T2/a/shared/x.md", "T2", id="else the key"),
        pytest.param(b"\x00\xff", b"no-slash", None, id="a key of another kind"),
        pytest.param(None, None, None, id="nothing"),
        pytest.param(b"\xff", b"\xff\xfe/x", None, id="no text"),
        pytest.param(b"[" * 100_000, b"T2/x", "T2", id="deeply nested"),
        pytest.param(b'{"tenant_id":5}', b"T2/x", "T2", id="wrong type"),
    ],
)
def test_the_tenant_of_a_broken_record(value: bytes | None, key: bytes | None, tenant: str | None) -> None:
    assert tenant_of(record(value, key=key)) == tenant


@given(value=st.none() | st.binary(), key=st.none() | st.binary(), reason=st.text())
def test_a_letter_keeps_the_bytes_through_json(value: bytes | None, key: bytes | None, reason: str) -> None:
    poisoned = Poisoned(record=record(value, key=key, offset=9), error=PoisonRecord("not_json", reason))
    letter = letter_of(poisoned, agent="ingest")
    read = decode(encode(letter), DeadLetter)
    assert (read, read.key, read.value, read.offset) == (letter, key, value, 9)
    assert letter.dead_letter_id == letter_of(poisoned, agent="ingest").dead_letter_id


def test_the_largest_record_fits_into_a_dead_letter() -> None:
    connection = KafkaConnection(servers="x:1", settings=KafkaSettings())
    largest = record(b"\xff" * connection.max_record_bytes("t"), key=None)
    letter = encode(
        letter_of(Poisoned(record=largest, error=PoisonRecord("not_json", "r" * 9_000)), agent="embed")
    )
    assert len(letter) <= connection.max_record_bytes("p.dead-letters")
    assert connection.max_request_bytes > connection.settings.max_message_bytes * DEAD_LETTER_FACTOR


def test_what_may_not_be_replayed() -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    topics = Topics("p")

    def why(*, topic: str = "p.documents", failed_at: str = now.isoformat()) -> str | None:
        letter = DeadLetter(
            dead_letter_id="i", agent="embed", topic=topic, partition=0, offset=0, key=None, value=None,
            error_class="other", reason="", failed_at=failed_at,
        )  # fmt: skip
        return refusal(letter, topics=topics, now=now)

    read = [topic for topic in topics.retention_ms if topic != topics.dead_letters]
    assert {topic: why(topic=topic) for topic in read} == dict.fromkeys(read)
    assert why(failed_at=(now - timedelta(days=30)).isoformat()) is None
    assert why(failed_at=(now - timedelta(days=30, seconds=1)).isoformat()) == IsStr(
        regex="failed 30 days ago.*"
    )
    assert why(topic="p.dead-letters") == "p.dead-letters is not read by any agent of this installation"
    assert why(failed_at="yesterday") == "failed_at 'yesterday' is no time with a zone"
    assert why(failed_at="2026-11-29T00:00:00") == IsStr(regex="failed_at .* is no time with a zone")


@pytest.mark.parametrize("name", ["ingest-0", None])
def test_a_worker_that_reads_another_topic_is_another_member(name: str | None) -> None:
    def member(*topics: str) -> str | None:
        spec = AgentSpec(
            name="ingest", topics=Topics("p"), kafka=KafkaSettings(), servers="s:1",
            settings=AgentSettings(instance_id=name), reads=topics,
        )  # fmt: skip
        return member_name(spec)

    now, restarted, newer = member("p.a", "p.b"), member("p.b", "p.a"), member("p.a", "p.b", "p.c")
    assert now == restarted
    assert (now is None) is (newer is None) is (name is None)
    assert name is None or now != newer


def test_a_filter_takes_what_agrees_in_everything_asked() -> None:
    letter = letter_of(Poisoned(record=record(), error=PoisonRecord("not_json", "")), agent="ingest")
    assert LetterFilter().takes(letter)
    assert LetterFilter(agent="ingest", error_class="not_json").takes(letter)
    assert not LetterFilter(agent="embed").takes(letter)
    assert not LetterFilter(tenant_id="T1").takes(letter)
    assert not LetterFilter(ids=frozenset()).takes(letter)


def test_no_input_can_add_a_label() -> None:
    registry = CollectorRegistry()
    metrics = StreamMetrics(registry, agent="ingest")
    metrics.parked("made up")
    seen = {
        sample.labels["error_class"]: sample.value
        for family in registry.collect()
        if family.name == "hopline_stream_dead_letters"
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert seen == {**dict.fromkeys(ERROR_CLASSES, 0.0), "other": 1.0}
    assert {"kafka", "opensearch"} <= set(DEPENDENCIES)
