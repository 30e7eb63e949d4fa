"""Values that are looked up elsewhere and remembered for a few seconds: bounded, one request at a time for each."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from indexers.errors import RefusedRequest, Transient

V = TypeVar("V")
#: A store that doesn't answer within this is away, for who only wants to be known.
LOOK_UP_SECONDS: Final = 5.0
#: A look-up that failed isn't tried again within this.
_FAILED_SECONDS: Final = 1.0


@dataclass(slots=True, kw_only=True)
class _Entry(Generic[V]):
    value: V
    #: When the look-up began: what was changed before that is in it.
    at: float


class CachedLookup(Generic[V]):
    """A value counts for `ttl_seconds` at most; half as old, it is looked up beside, so that nobody waits.

    `fetch` gives None where there is nothing; this is remembered apart, so that made-up names can't drive out what
    is in use. Raises Transient.
    """

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[V | None]],
        *,
        ttl_seconds: float,
        entries: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._ttl = ttl_seconds
        self._max = entries
        self._clock = clock
        self._found: OrderedDict[str, _Entry[V]] = OrderedDict()
        self._missing: OrderedDict[str, float] = OrderedDict()
        self._failed: tuple[float, Transient] | None = None
        self._pending: dict[str, asyncio.Task[V | None]] = {}

    async def get(self, name: str) -> V | None:
        now = self._clock()
        entry = self._found.get(name)
        if entry is not None and now - entry.at < self._ttl:
            self._found.move_to_end(name)
            if now - entry.at >= self._ttl / 2:
                self._look_up(name, now)
            return entry.value
        if now - self._missing.get(name, -self._ttl) < self._ttl:
            return None
        if self._failed is not None and now - self._failed[0] < _FAILED_SECONDS:
            raise Transient(self._failed[1].reason, self._failed[1].retry_after)
        # One caller that leaves takes nothing from the others.
        return await asyncio.shield(self._look_up(name, now))

    def last_known(self, name: str) -> V | None:
        """Whatever its age."""
        entry = self._found.get(name)
        return None if entry is None else entry.value

    def is_new(self, name: str) -> bool:
        """Nothing that counts is remembered or asked for: `get` will cost a request."""
        missing = self._clock() - self._missing.get(name, -math.inf) < self._ttl
        return name not in self._found and not missing and name not in self._pending

    def forget(self, name: str) -> None:
        """After a change made here; what is being looked up counts as begun before it."""
        self._found.pop(name, None)
        self._missing.pop(name, None)
        self._pending.pop(name, None)

    async def close(self) -> None:
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _look_up(self, name: str, now: float) -> asyncio.Task[V | None]:
        task = self._pending.get(name)
        if task is None:
            task = self._pending[name] = asyncio.create_task(self._remembered(name, now))
            task.add_done_callback(lambda done: self._settled(name, done))
        return task

    async def _remembered(self, name: str, now: float) -> V | None:
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                value = await self._fetch(name)
        except (TimeoutError, Transient, RefusedRequest) as fault:
            # Refused: the indices aren't made yet.
            away = fault if isinstance(fault, Transient) else Transient(f"no look-up: {type(fault).__name__}")
            self._failed = (self._clock(), away)
            raise away from fault
        if self._pending.get(name) is task:
            self._keep(name, value, now)
        return value

    def _keep(self, name: str, value: V | None, now: float) -> None:
        if value is None:
            self._found.pop(name, None)
            _bounded(self._missing, name, now, self._max)
        else:
            self._missing.pop(name, None)
            _bounded(self._found, name, _Entry(value=value, at=now), self._max)

    def _settled(self, name: str, task: asyncio.Task[V | None]) -> None:
        if self._pending.get(name) is task:
            del self._pending[name]
        if not task.cancelled():
            # A look-up beside has no other reader; its fault is met again by who must wait.
            task.exception()


T = TypeVar("T")


def _bounded(kept: OrderedDict[str, T], name: str, value: T, most: int) -> None:
    kept[name] = value
    kept.move_to_end(name)
    if len(kept) > most:
        kept.popitem(last=False)
