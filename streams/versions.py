"""Versions: microseconds since 1970, assigned once by the producer, never twice and never backwards in one process."""

from __future__ import annotations

import threading
import time
from typing import Final

#: So far ahead of ours another machine's clock may be: beyond it a version is a mistake, and would win for ever.
AHEAD_MAX: Final = 24 * 3_600 * 1_000_000


def now_version() -> int:
    return time.time_ns() // 1_000


def is_possible(version: int) -> bool:
    """False for what no clock can have drawn: negative, or over a day ahead."""
    return 0 <= version <= now_version() + AHEAD_MAX


class VersionClock:
    """`max(now, last known + 1)`: a clock that was set back can't make a newer change look older."""

    def __init__(self, last_known: int = 0) -> None:
        self._last = last_known
        self._lock = threading.Lock()

    def next(self) -> int:
        with self._lock:
            self._last = max(now_version(), self._last + 1)
            return self._last

    def observe(self, version: int) -> None:
        """Take note of a version seen elsewhere (the index), so that the next one is newer.

        An impossible one is passed over: following it would make all that comes after impossible too.
        """
        if is_possible(version):
            with self._lock:
                self._last = max(self._last, version)
