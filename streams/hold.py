"""Waiting for what is away: endless, with jitter, and visible."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from typing import Final, TypeVar

import structlog

from indexers.backoff import full_jitter
from indexers.errors import Transient
from streams.health import Liveness, Readiness
from streams.metrics import Dependency, StreamMetrics

T = TypeVar("T")
_FIRST_PAUSE: Final = 0.1
_log = structlog.get_logger("hopline.streams.hold")


class Holder:
    """Calls again while a call raises Transient. The partition is held meanwhile: nothing is acknowledged.

    There is no last try. On SIGTERM the worker cancels the batch when its grace is over, and the cancellation ends
    the wait.
    """

    def __init__(
        self, *, metrics: StreamMetrics, liveness: Liveness, readiness: Readiness, longest_pause: float
    ) -> None:
        self._metrics = metrics
        self._liveness = liveness
        self._readiness = readiness
        self._longest = longest_pause
        self._holding: Counter[Dependency] = Counter()

    async def hold(self, dependency: Dependency, call: Callable[[], Awaitable[T]]) -> T:
        attempt = 0
        with self._shown(dependency) as show:
            while True:
                try:
                    result = await call()
                except Transient as exc:
                    attempt += 1
                    show()
                    await self._pause(dependency, attempt, exc)
                else:
                    self._reached(dependency, attempt)
                    return result

    async def pause(self, dependency: Dependency, seconds: float) -> None:
        """A pause of our own choice that liveness must not mistake for a standstill."""
        with self._shown(dependency) as show:
            show()
            self._liveness.tried(dependency)
            await asyncio.sleep(seconds)
            self._liveness.reached(dependency)

    async def _pause(self, dependency: Dependency, attempt: int, exc: Transient) -> None:
        self._metrics.retries.labels(dependency=dependency).inc()
        self._liveness.tried(dependency)
        pause = full_jitter(
            attempt,
            base_seconds=_FIRST_PAUSE,
            cap_seconds=self._longest,
            jitter=random.random(),  # noqa: S311 - spreads load, guards nothing
            at_least=exc.retry_after or 0.0,
        )
        if attempt & (attempt - 1) == 0:  # 1, 2, 4, 8 …: an outage of hours is no flood of lines
            _log.warning(
                "batch.held", dependency=dependency, attempt=attempt, reason=exc.reason, pause=round(pause, 3)
            )
        await asyncio.sleep(pause)

    def _reached(self, dependency: Dependency, failed: int) -> None:
        self._readiness.met(dependency)
        self._liveness.reached(dependency)
        if failed:
            _log.info("batch.released", dependency=dependency, attempts=failed + 1)

    @contextlib.contextmanager
    def _shown(self, dependency: Dependency) -> Generator[Callable[[], None]]:
        """Two batches may wait for one dependency, one in each stage: it is held until the last of them goes on."""
        shown = False

        def show() -> None:
            nonlocal shown
            if not shown:
                shown = True
                self._count(dependency, 1)

        try:
            yield show
        finally:
            if shown:
                self._count(dependency, -1)

    def _count(self, dependency: Dependency, change: int) -> None:
        self._holding[dependency] += change
        self._metrics.held.labels(dependency=dependency).set(self._holding[dependency] > 0)
