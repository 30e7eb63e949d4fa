"""The model's thread, and where it may run."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from indexers.errors import ConfigurationError

P = ParamSpec("P")
T = TypeVar("T")


class PinnedThread:
    """One thread that stays on the given cores (none: on any); threads which it starts inherit them.

    The caller's own thread keeps its freedom: Kafka, HTTP and the rest go where the system likes.
    """

    def __init__(self, cores: tuple[int, ...], *, section: str = "embedder") -> None:
        # Not every system can pin threads: without cores it isn't asked.
        if cores and not set(cores) <= (allowed := os.sched_getaffinity(0)):
            raise ConfigurationError(
                f"HOPLINE_{section.upper()}__CPU_AFFINITY names cores {list(cores)}; "
                f"this process may use {sorted(allowed)}"
            )
        self._executor = ThreadPoolExecutor(
            1, thread_name_prefix=section, initializer=_stay, initargs=(cores,)
        )

    def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.submit(work, *args, **kwargs).result()

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """To be done after what was submitted before."""
        return self._executor.submit(work, *args, **kwargs)


def _stay(cores: tuple[int, ...]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)
