"""Back-off: how long, how often, and how it ends."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import pytest

from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.retry import RetryPolicy


@dataclass(slots=True)
class Flaky:
    """Fails so many times, then answers."""

    failures: int
    calls: int = 0
    waits: list[str] = field(default_factory=list)

    async def __call__(self) -> str:
        self.calls += 1
        await asyncio.sleep(0)
        if self.calls <= self.failures:
            raise Transient(f"away {self.calls}")
        return "there"

    def on_wait(self, reason: str, _seconds: float) -> None:
        self.waits.append(reason)


async def test_goes_on_until_the_store_is_back() -> None:
    flaky = Flaky(failures=12)
    policy = RetryPolicy(base_seconds=0.001, cap_seconds=0.002, on_wait=flaky.on_wait)
    assert await policy.call(flaky) == "there"
    assert flaky.waits == [f"away {n}" for n in range(1, 13)]


async def test_once_tells_at_once() -> None:
    flaky = Flaky(failures=1)
    with pytest.raises(Transient, match="away 1"):
        await RetryPolicy.once().call(flaky)
    assert flaky.calls == 1


async def test_a_bounded_policy_gives_up_with_the_last_fault() -> None:
    flaky = Flaky(failures=9)
    with pytest.raises(Transient, match="away 3"):
        await RetryPolicy(attempts=3, base_seconds=0.001).call(flaky)
    assert flaky.calls == 3


async def test_a_stop_ends_a_long_wait_soon() -> None:
    stopping: list[bool] = []
    policy = RetryPolicy(
        base_seconds=30, cap_seconds=30, jitter=lambda: 1.0, stop=lambda: bool(stopping),
        on_wait=lambda _reason, _seconds: stopping.append(True),
    )  # fmt: skip
    started = time.monotonic()
    with pytest.raises(Transient):
        await policy.call(Flaky(failures=5))
    assert time.monotonic() - started < 2


async def test_what_is_not_transient_passes_through() -> None:
    async def refused() -> None:
        await asyncio.sleep(0)
        raise RefusedRequest(400, "bad", "reason")

    with pytest.raises(RefusedRequest, match="bad: reason"):
        await RetryPolicy().call(refused)


def test_delays_grow_to_the_cap() -> None:
    policy = RetryPolicy(base_seconds=0.1, cap_seconds=5.0, jitter=lambda: 1.0)
    assert [policy.delay(n, None) for n in (1, 2, 3, 7, 1_000_000)] == [0.1, 0.2, 0.4, 5.0, 5.0]


def test_jitter_spreads_and_never_makes_a_hot_loop() -> None:
    assert RetryPolicy(jitter=lambda: 0.0).delay(5, None) == 0.025
    assert RetryPolicy(jitter=lambda: 0.5).delay(5, None) == pytest.approx(0.8)


@pytest.mark.parametrize(("retry_after", "expected"), [(7.0, 7.0), (0.01, 0.1), (86_400.0, 60.0)])
def test_retry_after_is_a_lower_bound_within_a_minute(retry_after: float, expected: float) -> None:
    assert RetryPolicy(jitter=lambda: 1.0).delay(1, retry_after) == expected
