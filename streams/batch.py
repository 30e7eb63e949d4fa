"""The commit rule, as types.

An offset is acknowledged only after, for every record of its batch, either the store has confirmed what follows from
the record or the record itself was confirmed in dead letters. So: `prepare` (model), then `commit` (store), then
acknowledge, in that order and, from batch to batch, in order. While batch n is in `commit`, batch n+1 may be in
`prepare`, and of an agent that says so (`AgentSpec.preparing`) batch n+2 beside it; never more. A batch that isn't
finished isn't acknowledged and comes again, whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from indexers.errors import PoisonRecord
from streams.events import decode

P = TypeVar("P")
E = TypeVar("E", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One Kafka record as raw bytes. `timestamp`: seconds since 1970, as the broker keeps it.

    `trace`: what led to it (`streams.tracing.HEADER`), where its sender traces.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float
    trace: str | None = None

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"")

    @property
    def place(self) -> tuple[str, int, int]:
        return (self.topic, self.partition, self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisoned:
    """A record that no retry can mend, and why."""

    record: Record
    error: PoisonRecord


class BatchHandler(Protocol[P]):
    """What an agent does with a batch. Both stages are repeated at any time (redelivery), so effects are idempotent.

    `prepare` decodes and calls the model; no side effects. It runs while the batch before is still in `commit` (or, of
    two in `prepare`, not even there), which the store may show in part or not at all. So it may read from the store
    only what stays true whatever that batch writes: that an event is outdated (versions only grow), or a vector of the
    same text. What isn't found there may still come, and decides nothing; whatever depends on it is looked at again in
    `commit`.

    `commit` writes. When it returns, every record was confirmed by the store or parked (`AgentContext.park`).

    Exceptions, from either: Transient → the stage is called again with the same argument, after a pause, for as long
    as it takes; PoisonRecord → the records are handled one by one, and the one that raises it alone is parked;
    anything else is a bug: the process ends with status 70, nothing acknowledged.
    """

    async def prepare(self, records: Sequence[Record]) -> P: ...

    async def commit(self, prepared: P) -> None: ...


def decode_each(records: Sequence[Record], kind: type[E]) -> tuple[list[tuple[Record, E]], list[Poisoned]]:
    """The events that decode, in order, and the records that don't."""
    good: list[tuple[Record, E]] = []
    bad: list[Poisoned] = []
    for record in records:
        try:
            good.append((record, decode(record.value, kind)))
        except PoisonRecord as error:
            bad.append(Poisoned(record=record, error=error))
    return good, bad


def split_by_bytes(records: Sequence[Record], max_bytes: int) -> Iterator[Sequence[Record]]:
    """Consecutive slices of at most `max_bytes` each; a larger single record stands alone."""
    start = size = 0
    for at, record in enumerate(records):
        if at > start and size + record.size > max_bytes:
            yield records[start:at]
            start, size = at, 0
        size += record.size
    if start < len(records):
        yield records[start:]


class BatchSizes:
    """Most records of the next batch: `first` after a quiet time, twice as many after each full one, to `most`.

    Of a burst later agents get the first records soon, while the rest costs the store little more than at once. A
    trickle fills no batch, so a burst behind it starts small too.
    """

    def __init__(self, *, first: int, most: int) -> None:
        self._first = min(first, most)
        self._most = most
        self.next = self._first

    def restart(self) -> None:
        self.next = self._first

    def taken(self, records: int) -> None:
        if records == self.next:
            self.next = min(2 * records, self._most)


def poison_run(run: int, *, records: int, parked: int) -> int:
    """Dead letters since the last good record, after one more batch."""
    return run + parked if parked == records else 0


def offsets_of(records: Sequence[Record]) -> dict[str, str]:
    """Which records these are, for a person with the topic before them: `{"hopline.documents:2": "40-57"}`."""
    found: dict[str, tuple[int, int]] = {}
    for record in records:
        first, last = found.get(place := f"{record.topic}:{record.partition}", (record.offset, record.offset))
        found[place] = (min(first, record.offset), max(last, record.offset))
    return {place: f"{first}-{last}" for place, (first, last) in found.items()}
