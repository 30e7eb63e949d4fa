"""Versions: microseconds since 1970, assigned once by the producer, never twice and never backwards in one process."""

from __future__ import annotations

import threading
import time


class VersionClock:
    """`max(now, last known + 1)`: a clock that was set back can't make a newer change look older."""

    def __init__(self, last_known: int = 0) -> None:
        self._last = last_known
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            self._last = max(time.time_ns() // 1_000, self._last + 1)
            return self._last

    def observe(self, version: int) -> None:
        """Take note of a version seen elsewhere (the index), so that the next one is newer."""
        with self._lock:
            self._last = max(self._last, version)
