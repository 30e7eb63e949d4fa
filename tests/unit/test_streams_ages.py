"""How late a group is, in seconds: from its records where they are in work, else from what was seen of the topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from streams.freshness import ages
from streams.lag import PartitionLag
from streams.metrics import StreamMetrics
from streams.standing import Standing

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def behind(committed: int, end: int, partition: int = 0, topic: str = "t") -> PartitionLag:
    return PartitionLag(topic=topic, partition=partition, committed=committed, start=0, end=end)


def test_what_is_in_work_is_as_old_as_its_record() -> None:
    clock = Clock()
    standing = Standing(clock)
    standing.read([behind(5, 9)], {("t", 0): 940.0})
    assert standing.lag_seconds("t") == 60.0
    clock.now += 7
    assert standing.lag_seconds("t") == 67.0


def test_what_nobody_took_ages_from_when_it_was_seen() -> None:
    clock = Clock()
    standing = Standing(clock)
    standing.read([behind(5, 9)], {})
    clock.now += 10
    standing.read([behind(5, 12)], {})
    clock.now += 10
    assert standing.lag_seconds("t") == 20.0
    standing.read([behind(9, 12)], {})
    assert standing.lag_seconds("t") == 10.0
    standing.read([behind(12, 12)], {})
    assert (standing.lag_seconds("t"), standing.commit_age_seconds()) == (0.0, 0.0)


def test_the_oldest_partition_says_how_late_the_topic_is() -> None:
    standing = Standing(Clock())
    standing.read(
        [behind(1, 2), behind(1, 2, partition=1), behind(0, 3, topic="u")], {("t", 1): 900.0, ("t", 7): 1.0}
    )
    assert [standing.lag_seconds(topic) for topic in ("t", "u", "v")] == [100.0, 0.0, 0.0]


def test_a_commit_is_as_old_as_the_last_move_while_records_wait() -> None:
    clock = Clock()
    standing = Standing(clock)
    assert not standing.read([behind(0, 5)], {})
    clock.now += 30
    assert not standing.read([behind(0, 5)], {})
    assert standing.commit_age_seconds() == 30.0
    assert standing.read([behind(1, 5)], {})
    assert standing.commit_age_seconds() == 0.0
    clock.now += 4
    assert standing.commit_age_seconds() == 4.0
    standing.forget()
    assert standing.commit_age_seconds() == 0.0


def test_a_first_look_after_an_assignment_is_no_move() -> None:
    standing = Standing(Clock())
    standing.read([behind(3, 5)], {})
    standing.forget()
    assert not standing.read([behind(4, 5)], {})


@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=1_200))
def test_an_age_is_never_more_than_the_record_has(steps: list[tuple[int, int]]) -> None:
    """Records come one second before they can be seen; each step some come and some are committed."""
    clock, came, committed = Clock(), list[float](), 0
    standing = Standing(clock)
    for arriving, done in steps:
        came += [clock.now] * arriving
        committed = min(len(came), committed + done)
        clock.now += 1
        standing.read([behind(committed, len(came))], {})
        true = clock.now - came[committed] if committed < len(came) else 0.0
        assert standing.lag_seconds("t") <= true
        assert (standing.lag_seconds("t") == 0.0) == (true <= 1.0)


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        pytest.param("2026-12-01T11:59:30+00:00", [30.0], id="utc"),
        pytest.param("2026-12-01T12:59:30+01:00", [30.0], id="another offset"),
        pytest.param("2026-12-01T11:59:30", [30.0], id="no offset"),
        pytest.param("2026-12-01T12:00:30+00:00", [0.0], id="a clock ahead"),
        pytest.param("yesterday", [], id="no moment"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_the_age_of_a_moment(moment: str, seconds: list[float]) -> None:
    assert list(ages([moment], NOW)) == seconds


def test_ages_are_shown_as_they_are_when_asked() -> None:
    clock, registry = Clock(), CollectorRegistry()
    standing = Standing(clock)
    StreamMetrics(registry, agent="test").follow(standing, ["t"])
    standing.read([behind(5, 9)], {("t", 0): 990.0})
    clock.now += 5
    assert registry.get_sample_value("hopline_stream_lag_seconds", {"topic": "t"}) == 15.0
    assert registry.get_sample_value("hopline_stream_commit_age_seconds") == 5.0
