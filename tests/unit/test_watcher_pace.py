"""The pace of a bulk, against an ingest whose time is counted and not lived through."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from streams.settings import KafkaSettings, WatcherSettings
from streams.watcher.pace import FIRST_RECORDS, LEAST_RECORDS, Pace
from streams.watcher.pacing import LOOK_SECONDS as LOOK

#: As shipped: the figures below are those of the defaults.
WATCHER, COMMIT = WatcherSettings(), KafkaSettings().commit_interval_seconds


def pace() -> Pace:
    return Pace(
        lag_seconds=WATCHER.bulk_lag_seconds,
        commit_seconds=COMMIT,
        patience_seconds=WATCHER.bulk_patience_seconds,
    )


@dataclass(kw_only=True)
class Ingest:
    """One batch after another, each of `fixed` + `each` × records seconds; what is done is committed every `COMMIT`."""

    fixed: float
    each: float
    sent: int = 0
    taken: int = 0
    done: int = 0
    committed: int = 0
    _until: float = 0.0
    _commit_at: float = COMMIT
    waits: list[float] = field(default_factory=list)

    def until(self, at: float) -> None:
        while self._until <= at:
            self.done = self.taken
            batch = min(self.sent - self.taken, 200)
            if not batch:
                break
            self.taken += batch
            # To whoever comes now: the rest of this batch, and all that stands before him.
            self.waits.append((self.sent - self.taken + batch) * self.each + self.fixed)
            self._until = max(self._until, at - LOOK) + self.fixed + self.each * batch
        while self._commit_at <= at:
            self.committed = self.done
            self._commit_at += COMMIT


def sent_through(ingest: Ingest, files: int) -> float:
    """Seconds until the last of the files is committed, at this pace."""
    now, own, looked_at = 0.0, pace(), -1.0
    while ingest.committed < files:
        ingest.until(now)
        if now - looked_at >= LOOK:
            own.seen(now, committed=ingest.committed, waiting=ingest.sent - ingest.committed)
            looked_at = now
        room = own.room(now, min(500, files - ingest.sent)) if ingest.sent < files else 0
        own.granted(room)
        ingest.sent += room
        # A portion is read and sent in no time, or nearly.
        now += room / 20_000 if room else LOOK
        assert now < 10_000
    return now


def test_a_fast_ingest_is_kept_busy() -> None:
    """The hash gate: 5,600 unchanged files a second at most."""
    assert 50_000 / sent_through(Ingest(fixed=0.005, each=1 / 6_500), 50_000) > 4_800
    assert 10_000 / sent_through(Ingest(fixed=0.005, each=1 / 6_500), 10_000) > 3_500


@pytest.mark.parametrize(
    ("fixed", "each", "rate", "wait"),
    [(0.1, 0.005, 120, 0.5), (0.3, 0.015, 30, 0.85), (0.02, 0.002, 400, 0.4)],
)
def test_a_newcomer_waits_little_and_the_bulk_goes_on(
    fixed: float, each: float, rate: float, wait: float
) -> None:
    """`rate`: files a second. Ingest's best, with batches of 200, would be 182, 61 and 476. `wait`: seconds (p95)."""
    ingest = Ingest(fixed=fixed, each=each)
    seconds = sent_through(ingest, 3_000)
    waits = sorted(ingest.waits[5:])
    assert waits[int(len(waits) * 0.95)] < wait
    assert 3_000 / seconds > rate


def test_nothing_is_known_at_first() -> None:
    own = pace()
    own.seen(100.0, committed=7, waiting=0)
    assert own.room(100.0, 500) == FIRST_RECORDS
    own.granted(FIRST_RECORDS)
    assert own.room(100.05, 500) == 0
    own.seen(100.5, committed=7 + FIRST_RECORDS, waiting=0)
    assert own.rate == pytest.approx(FIRST_RECORDS / 0.5)


def test_what_others_wait_for_is_not_added_to() -> None:
    """Records of anybody count: a second watcher, a rebuild, memory that came first."""
    own = pace()
    own.seen(0.0, committed=0, waiting=10_000)
    assert own.room(0.0, 500) == 0
    own.seen(1.0, committed=500, waiting=9_500)
    assert (own.rate, own.room(1.0, 500)) == (500, 0)
    own.seen(2.0, committed=10_000, waiting=0)
    assert own.room(2.0, 500) == 500


def test_an_ingest_that_is_away_holds_nobody_up() -> None:
    own = pace()
    own.seen(0.0, committed=40, waiting=0)
    own.granted(own.room(0.0, 500))
    own.seen(9.9, committed=40, waiting=FIRST_RECORDS)
    assert (own.is_away(9.9), own.room(9.9, 500)) == (False, 0)
    own.seen(10.0, committed=40, waiting=FIRST_RECORDS)
    assert (own.is_away(10.0), own.room(10.0, 500)) == (True, 500)
    own.granted(500)
    own.seen(10.1, committed=240, waiting=500)
    assert (own.is_away(10.1), own.room(10.1, 500)) == (False, 0)


def test_a_quiet_time_between_two_bulks_says_nothing_of_the_speed() -> None:
    own = pace()
    own.seen(0.0, committed=0, waiting=0)
    own.granted(100)
    own.seen(0.2, committed=100, waiting=0)
    assert own.rate == pytest.approx(500)
    own.seen(3_600.0, committed=150, waiting=0)
    assert own.rate == pytest.approx(500)


def test_portions_are_not_of_one_record() -> None:
    own = pace()
    own.seen(0.0, committed=0, waiting=0)
    own.granted(FIRST_RECORDS - LEAST_RECORDS + 1)
    assert own.room(0.0, 500) == 0
    assert own.room(0.0, LEAST_RECORDS - 1) == LEAST_RECORDS - 1
