"""How long to go on when OpenSearch is away or overloaded."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from indexers.backoff import full_jitter
from indexers.errors import Transient

T = TypeVar("T")
#: A stop request is seen within this time, however long the wait.
_SLICE_SECONDS = 0.2
#: A server that asks for more is asked again all the same.
_LONGEST_ASKED_SECONDS = 60.0


def _ignore(_reason: str, _seconds: float) -> None:
    return


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off with full jitter. `Transient` is what is retried; everything else passes through.

    `attempts` is None for agents: they hold the partition until the store is back or `stop` says so.
    """

    attempts: int | None = None
    base_seconds: float = 0.1
    cap_seconds: float = 5.0
    #: Told the reason and the length of each wait before it begins.
    on_wait: Callable[[str, float], None] = _ignore
    #: Asked before and during each wait; True ends it with the last `Transient`.
    stop: Callable[[], bool] = _never
    #: 0.0 ≤ value < 1.0.
    jitter: Callable[[], float] = random.random

    @classmethod
    def once(cls) -> RetryPolicy:
        """No second try: a caller that waits for an answer hears at once that there is none."""
        return cls(attempts=1)

    async def call(self, operation: Callable[[], Awaitable[T]]) -> T:
        """The operation's result; its last `Transient` when the attempts are used up or `stop` says so."""
        failures = 0
        while True:
            try:
                return await operation()
            except Transient as fault:
                failures += 1
                await self.wait(failures, fault)

    async def wait(self, failures: int, fault: Transient) -> None:
        """Sleep after the n-th failure in a row; raises the fault where there is no next attempt."""
        if self.stop() or (self.attempts is not None and failures >= self.attempts):
            raise fault
        remaining = self.delay(failures, fault.retry_after)
        self.on_wait(fault.reason, remaining)
        while remaining > 0:
            await asyncio.sleep(min(remaining, _SLICE_SECONDS))
            remaining -= _SLICE_SECONDS
            if self.stop():
                raise fault

    def delay(self, failures: int, retry_after: float | None) -> float:
        """A server's Retry-After is a lower bound and stands above the cap (within a minute)."""
        return full_jitter(
            failures,
            base_seconds=self.base_seconds,
            cap_seconds=self.cap_seconds,
            jitter=self.jitter(),
            at_least=min(retry_after or 0.0, _LONGEST_ASKED_SECONDS),
        )
