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
