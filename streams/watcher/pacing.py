"""A bulk of changes waits for ingest: the pace at the broker. One per process, shared by its roots."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from indexers.errors import HoplineError
from streams.lag import LagReader
from streams.settings import KafkaSettings, WatcherSettings
from streams.topics import Topics
from streams.watcher.metrics import WatcherMetrics
from streams.watcher.pace import Pace

log = structlog.get_logger()

#: Changes up to this number are no bulk: an edit, a save of all open files. They go at once.
LIVE_FILES: Final = 50
LOOK_SECONDS: Final = 0.1


async def nothing() -> None:
    return


class Stopped(HoplineError):  # noqa: N818 - a signal of the loop
    """The watcher is to stop, in the middle of a bulk: what isn't sent is found by the next scan."""


@dataclass(slots=True, kw_only=True)
class Pacing:
    """Portions of bulks, one after the other; of two roots' bulks in turn."""

    reader: LagReader
    topic: str
    pace: Pace
    metrics: WatcherMetrics
    stop: asyncio.Event
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _partitions: list[tuple[str, int]] | None = None
    _looked_at: float = float("-inf")
    _told_away: bool = False

    async def room(self, most: int, meanwhile: Callable[[], Awaitable[None]] = nothing) -> int:
        """How many of `most` records may go, 1 at least; `meanwhile` is called at every look. Raises Stopped."""
        async with self._turn:
            while True:
                if self.stop.is_set():
                    msg = "told to stop"
                    raise Stopped(msg)
                await meanwhile()
                room = await self._room(most)
                if room:
                    self.pace.granted(room)
                    return room
                await self._wait()

    async def _wait(self) -> None:
        self.metrics.bulk_waits.inc(LOOK_SECONDS)
        await asyncio.sleep(LOOK_SECONDS)

    async def _room(self, most: int) -> int:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            try:
                await self._look()
            except HoplineError as exc:
                # Whether the broker is away or doesn't tell us of groups: sending says so, or goes well.
                log.warning("lag.unknown", reason=str(exc))
                return most
        now = time.monotonic()
        self._tell(away=self.pace.is_away(now))
        return self.pace.room(now, most)

    async def _look(self) -> None:
        found = await self.reader.read([self.topic], self._partitions)
        self._looked_at = time.monotonic()
        self._partitions = [(part.topic, part.partition) for part in found]
        waiting = sum(part.lag for part in found)
        committed = sum(part.end for part in found) - waiting
        self.pace.seen(self._looked_at, committed=committed, waiting=waiting)
        self.metrics.ingest_rate.set(self.pace.rate or 0.0)

    def _tell(self, *, away: bool) -> None:
        if away and not self._told_away:
            log.warning("bulk.not_held", reason="ingest commits nothing; the broker keeps what it can't take")
        self._told_away = away


def open_pacing(
    settings: WatcherSettings,
    kafka: KafkaSettings,
    servers: str,
    topics: Topics,
    *,
    metrics: WatcherMetrics,
    stop: asyncio.Event,
) -> Pacing | None:
    """None: bulks are never held back. To be closed by its reader."""
    if not settings.bulk_lag_seconds:
        return None
    pace = Pace(
        lag_seconds=settings.bulk_lag_seconds,
        commit_seconds=kafka.commit_interval_seconds,
        patience_seconds=settings.bulk_patience_seconds,
    )
    return Pacing(
        reader=LagReader(kafka, servers, topics.group("ingest")),
        topic=topics.file_changes,
        pace=pace,
        metrics=metrics,
        stop=stop,
    )
