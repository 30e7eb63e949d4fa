"""Several waits at once."""

from __future__ import annotations

import asyncio

import pytest

from indexers.errors import Transient
from indexers.together import together


async def test_results_come_in_the_order_of_the_calls() -> None:
    async def after(seconds: float, value: str) -> str:
        await asyncio.sleep(seconds)
        return value

    assert await together(after(0.01, "a"), after(0, "b")) == ["a", "b"]
    assert await together() == []


async def test_no_more_than_so_many_are_under_way() -> None:
    under_way: list[int] = []
    began: list[int] = []

    async def call(number: int) -> int:
        began.append(number)
        under_way.append(len(began))
        await asyncio.sleep(0)
        began.remove(number)
        return number

    assert await together(*map(call, range(20)), at_once=3) == list(range(20))
    assert max(under_way) == 3
    under_way.clear()
    assert await together(*map(call, range(20))) == list(range(20))
    assert max(under_way) == 20


async def test_a_fault_is_raised_as_it_is_and_ends_the_others() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def fail() -> None:
        raise Transient("away", 3.0)

    with pytest.raises(Transient, match="away") as raised:
        await together(wait(), fail())
    assert (raised.value.retry_after, ended.is_set()) == (3.0, True)


async def test_a_cancellation_goes_before_a_fault() -> None:
    """A worker that gives up its batch while the store is away: the fault alone would be tried again, for ever."""
    closing, closed = asyncio.Event(), asyncio.Event()

    async def close_slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            closing.set()
            await closed.wait()

    async def fail() -> None:
        raise Transient("away")

    waiting = asyncio.create_task(together(close_slowly(), fail()))
    await closing.wait()
    waiting.cancel()
    await asyncio.sleep(0)
    closed.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_fault_leaves_nothing_of_its_own_cancellation() -> None:
    async def fail() -> None:
        raise Transient("away")

    with pytest.raises(Transient):
        await together(asyncio.sleep(60), fail())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_call_that_never_began_is_ended_quietly() -> None:
    """Python would warn of it, and a warning is a fault here."""

    async def fail() -> None:
        raise Transient("away")

    with pytest.raises(Transient):
        await together(fail(), asyncio.sleep(60), asyncio.sleep(60), at_once=1)
