"""What was waited for in one search: milliseconds by name, and requests to the engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from search_api.metrics import ApiMetrics


@dataclass(slots=True)
class Steps:
    metrics: ApiMetrics
    ms: dict[str, float] = field(default_factory=dict)
    #: Requests to the engine, one after another.
    round_trips: int = 0

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self.ms[name] = round(self.ms.get(name, 0.0) + seconds * 1_000, 3)
            self.metrics.step_seconds.labels(step=name).observe(seconds)
