"""How much memory a process of the product takes for a piece of work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

_LOOK_SECONDS = 0.01


class Growth:
    """Highest resident size seen above that of the start, bytes."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._start = self.bytes = 0
        self._start = self._resident()

    def look(self) -> None:
        self.bytes = max(self.bytes, self._resident() - self._start)

    def _resident(self) -> int:
        size: int = self._process.memory_info().rss
        return size


@contextmanager
def measured_growth(pid: int) -> Iterator[Growth]:
    """Looks at the process a hundred times a second while inside."""
    growth, done = Growth(pid), threading.Event()

    def keep_looking() -> None:
        while not done.wait(_LOOK_SECONDS):
            growth.look()

    looking = threading.Thread(target=keep_looking, daemon=True)
    looking.start()
    try:
        yield growth
    finally:
        done.set()
        looking.join(5)
        growth.look()
