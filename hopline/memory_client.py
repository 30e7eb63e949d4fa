"""The client's methods about memories and the graph; `HoplineClient` and `AsyncHoplineClient` inherit them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from hopline import memory_calls
from hopline.calls import Call
from hopline.memory_answers import Event, Graph, Milestone, Related, WhoAmI, Written
from hopline.memory_calls import Memory

T = TypeVar("T")
#: The longest that the service waits in one request.
_WAIT_SECONDS = 8.0


class MemoryMethods(ABC):
    """Blocking."""

    @abstractmethod
    def call(self, call: Call[T]) -> T: ...

    def write(self, content: str, *, wait_for: Milestone | None = None, **fields: Any) -> Written:
        """A memory; fields as in `memory_calls.Memory`. Safe to repeat with the same `idempotency_key`."""
        return self.call(memory_calls.write(Memory(content=content, **fields), wait_for=wait_for))

    def write_many(self, memories: Sequence[Memory], *, wait_for: Milestone | None = None) -> list[Written]:
        """At most 100, all of them or none."""
        return self.call(memory_calls.write_many(memories, wait_for=wait_for)).memories

    def update(
        self, doc_id: str, content: str, *, wait_for: Milestone | None = None, **fields: Any
    ) -> Written:
        """The text of a memory anew; what else is given changes too."""
        return self.call(memory_calls.update(doc_id, Memory(content=content, **fields), wait_for=wait_for))

    def forget(self, doc_id: str, *, wait_for: Milestone | None = None) -> Written:
        """Found no more; the file is laid aside in its vault."""
        return self.call(memory_calls.forget(doc_id, wait_for=wait_for))

    def event(self, event_id: str, *, wait_for: Milestone | None = None) -> Event:
        return self.call(memory_calls.event(event_id, wait_for=wait_for))

    def wait(self, event_id: str, until: Milestone = "searchable", *, timeout_seconds: float = 30.0) -> Event:
        """Until the change has come so far, has ended otherwise, or the time is over: look at the answer's state."""
        end = time.monotonic() + timeout_seconds
        while True:
            left = end - time.monotonic()
            found = self.call(_awaited(event_id, until, left))
            if _is_over(found, until, end):
                return found

    def related(self, doc_id: str, *, page_size: int | None = None) -> Related:
        """Documents one step away, each with its reasons."""
        return self.call(memory_calls.related(doc_id, page_size=page_size))

    def graph(self, doc_id: str, *, depth: int | None = None) -> Graph:
        return self.call(memory_calls.graph(doc_id, depth=depth))

    def whoami(self) -> WhoAmI:
        return self.call(memory_calls.whoami())


class AsyncMemoryMethods(ABC):
    """The same for asyncio."""

    @abstractmethod
    async def call(self, call: Call[T]) -> T: ...

    async def write(self, content: str, *, wait_for: Milestone | None = None, **fields: Any) -> Written:
        return await self.call(memory_calls.write(Memory(content=content, **fields), wait_for=wait_for))

    async def write_many(
        self, memories: Sequence[Memory], *, wait_for: Milestone | None = None
    ) -> list[Written]:
        return (await self.call(memory_calls.write_many(memories, wait_for=wait_for))).memories

    async def update(
        self, doc_id: str, content: str, *, wait_for: Milestone | None = None, **fields: Any
    ) -> Written:
        changes = Memory(content=content, **fields)
        return await self.call(memory_calls.update(doc_id, changes, wait_for=wait_for))

    async def forget(self, doc_id: str, *, wait_for: Milestone | None = None) -> Written:
        return await self.call(memory_calls.forget(doc_id, wait_for=wait_for))

    async def event(self, event_id: str, *, wait_for: Milestone | None = None) -> Event:
        return await self.call(memory_calls.event(event_id, wait_for=wait_for))

    async def wait(
        self, event_id: str, until: Milestone = "searchable", *, timeout_seconds: float = 30.0
    ) -> Event:
        end = time.monotonic() + timeout_seconds
        while True:
            found = await self.call(_awaited(event_id, until, end - time.monotonic()))
            if _is_over(found, until, end):
                return found

    async def related(self, doc_id: str, *, page_size: int | None = None) -> Related:
        return await self.call(memory_calls.related(doc_id, page_size=page_size))

    async def graph(self, doc_id: str, *, depth: int | None = None) -> Graph:
        return await self.call(memory_calls.graph(doc_id, depth=depth))

    async def whoami(self) -> WhoAmI:
        return await self.call(memory_calls.whoami())


def _awaited(event_id: str, until: Milestone, left: float) -> Call[Event]:
    seconds = round(min(max(left, 0.1), _WAIT_SECONDS), 1)
    return memory_calls.event(event_id, wait_for=until, timeout_seconds=seconds)


def _is_over(found: Event, until: Milestone, end: float) -> bool:
    return found.reached(until) or found.ended or time.monotonic() >= end
