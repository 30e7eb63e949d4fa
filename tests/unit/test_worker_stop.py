"""A stop of the stream library has a bound, whatever it does with a cancellation."""

import asyncio

import pytest

from streams.worker import done_within


async def test_a_stop_that_swallows_its_cancellation_is_not_waited_for() -> None:
    released = asyncio.Event()

    async def stubborn() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    try:
        async with asyncio.timeout(5):
            assert not await done_within(stubborn(), 0.01)
    finally:
        released.set()
        await asyncio.sleep(0)


async def test_a_stop_in_time_is_told_as_done() -> None:
    assert await done_within(asyncio.sleep(0), 5)


async def test_what_a_stop_raises_is_raised() -> None:
    async def failing() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await done_within(failing(), 5)
