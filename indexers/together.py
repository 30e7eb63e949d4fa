"""Several waits at once, with one fault for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*calls: Coroutine[Any, Any, T], at_once: int | None = None) -> list[T]:
    """Results in the order of the calls. The first fault cancels the others and is raised as it is, in no group.

    `at_once`: so many are under way, the others wait for their turn; None: all of them.

    A cancellation from outside goes before any fault. A task group that is told of a fault forgets one that comes
    while the others end (Python 3.11, 3.12), and who repeats a call after each fault would then never end. So the
    group isn't told.
    """
    tasks: list[asyncio.Task[T]] = []
    faults: list[Exception] = []
    room = asyncio.Semaphore(at_once or max(len(calls), 1))

    async def watched(call: Coroutine[Any, Any, T]) -> T:
        try:
            async with room:
                return await call
        except Exception as fault:
            faults.append(fault)
            for task in tasks:
                task.cancel()
            raise asyncio.CancelledError from fault

    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(watched(call)) for call in calls]
    finally:
        for call in calls:
            call.close()  # one that was cancelled before it began
    if faults:
        raise faults[0]
    return [task.result() for task in tasks]
