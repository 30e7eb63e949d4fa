"""Waits of the watcher for a service that is away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from indexers.opensearch.retry import RetryPolicy
from streams.health import Liveness
from streams.watcher.metrics import WatcherMetrics

log = structlog.get_logger()


class Waits:
    """Counts and tells of waits for a service; one per process."""

    def __init__(self, metrics: WatcherMetrics, watched: Sequence[Liveness], stop: asyncio.Event) -> None:
        self._metrics = metrics
        self._watched = watched
        self._stop = stop

    def policy(self, dependency: str, *, attempts: int | None) -> RetryPolicy:
        def on_wait(reason: str, seconds: float) -> None:
            self._metrics.retries.labels(dependency=dependency).inc()
            log.warning("service.awaited", dependency=dependency, reason=reason, seconds=round(seconds, 2))
            for liveness in self._watched:
                liveness.tried(dependency)

        return RetryPolicy(attempts=attempts, on_wait=on_wait, stop=self._stop.is_set)
