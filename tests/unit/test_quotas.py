"""Token buckets by tenant: what is let through, and for how long the rest is told to wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from indexers.domain.identity import AgentId, Principal, TenantId
from search_api.metrics import ApiMetrics
from search_api.problems import ProblemError
from search_api.quotas import Bucket, Quotas
from search_api.settings import LimitsSettings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def who(tenant: str = "acme", agent: str = "ada") -> Principal:
    return Principal(tenant_id=TenantId(tenant), agent_id=AgentId(agent))


def quotas(clock: Clock, **limits: float) -> Quotas:
    metrics = ApiMetrics(CollectorRegistry())
    settings = LimitsSettings.model_validate(limits)
    return Quotas(settings, refusals=metrics.quota_refusals, clock=clock)


def refused(take: Callable[[], None]) -> tuple[str, str, str]:
    """Kind, `Retry-After` and text."""
    with pytest.raises(ProblemError) as error:
        take()
    problem = error.value.problem
    assert problem.status == 429
    return problem.kind, problem.headers["retry-after"], problem.detail


def test_the_burst_passes_then_the_rate(clock: Clock) -> None:
    made = quotas(clock, requests_per_second=2, requests_burst=3)
    for _ in range(3):
        made.take_request(who())
    expected = (
        "rate-limited",
        "1",
        "The tenant's limit is 2 requests a second. Try again after `Retry-After` seconds.",
    )
    assert refused(lambda: made.take_request(who())) == expected
    clock.now += 0.5
    made.take_request(who(agent="bob"))
    assert refused(lambda: made.take_request(who(agent="bob"))) == expected


def test_tenants_do_not_share(clock: Clock) -> None:
    made = quotas(clock, requests_per_second=1, requests_burst=1)
    made.take_request(who("acme"))
    made.take_request(who("zeta"))
    refused(lambda: made.take_request(who("acme")))


def test_writes_and_bytes_are_taken_together_or_not_at_all(clock: Clock) -> None:
    made = quotas(clock, writes_per_second=1, writes_burst=2, bytes_per_day=86_400)
    made.take_write(who(), bytes_=86_400)
    assert refused(lambda: made.take_write(who(), bytes_=100)) == (
        "quota-exceeded",
        "100",
        "The tenant's limit is 86400 bytes written a day. Try again after `Retry-After` seconds.",
    )
    # The refused write cost no token of the other bucket.
    made.take_write(who(), bytes_=0)
    assert refused(lambda: made.take_write(who(), bytes_=0))[:2] == ("quota-exceeded", "1")


def test_more_than_a_burst_passes_when_the_bucket_is_full_and_is_waited_for_afterwards(clock: Clock) -> None:
    made = quotas(clock, writes_per_second=1, writes_burst=2)
    made.take_write(who(), bytes_=1, writes=10)
    assert refused(lambda: made.take_write(who(), bytes_=1))[1] == "9"
    clock.now += 9
    made.take_write(who(), bytes_=1)


def test_zero_is_no_limit(clock: Clock) -> None:
    made = quotas(clock, requests_per_second=0, writes_per_second=0, bytes_per_day=0)
    for _ in range(10_000):
        made.take_request(who())
    made.take_write(who(), bytes_=10**12, writes=10**6)


def test_a_tenants_own_limits_count_at_once_and_what_was_spent_stays_spent(clock: Clock) -> None:
    made = quotas(clock, requests_per_second=1, requests_burst=4)
    for _ in range(3):
        made.take_request(who())
    made.assign(who().tenant_id, LimitsSettings(requests_per_second=1, requests_burst=2))
    refused(lambda: made.take_request(who()))
    made.assign(who().tenant_id, LimitsSettings(requests_per_second=1, requests_burst=5))
    for _ in range(3):
        made.take_request(who())
    refused(lambda: made.take_request(who()))
    made.assign(who().tenant_id, LimitsSettings(requests_per_second=0))
    made.take_request(who())


def test_nobody_is_told_to_wait_for_ever(clock: Clock) -> None:
    made = quotas(clock, requests_per_second=5e-324, requests_burst=1)
    made.take_request(who())
    assert refused(lambda: made.take_request(who()))[1] == "604800"


def test_refusals_are_counted_by_kind(clock: Clock) -> None:
    metrics = ApiMetrics(CollectorRegistry())
    settings = LimitsSettings(requests_per_second=1, requests_burst=1, writes_per_second=1, writes_burst=1)
    made = Quotas(settings, refusals=metrics.quota_refusals, clock=clock)
    made.take_request(who())
    made.take_write(who(), bytes_=1)
    refused(lambda: made.take_request(who()))
    refused(lambda: made.take_write(who(), bytes_=1))
    sample = metrics.registry.get_sample_value
    kinds = [
        sample("hopline_quota_refusals_total", {"kind": kind}) for kind in ("requests", "writes", "bytes")
    ]
    assert kinds == [1.0, 1.0, 0.0]


@given(
    rate=st.floats(0.01, 1e4),
    capacity=st.integers(1, 10_000),
    steps=st.lists(st.tuples(st.floats(0, 100), st.integers(0, 200)), max_size=50),
)
def test_never_more_than_burst_and_rate_together(
    rate: float, capacity: int, steps: list[tuple[float, int]]
) -> None:
    """Over any run: what was given is at most the burst, the rate's share of the time, and one last debt."""
    now, given_out, largest = 0.0, 0, 0
    bucket = Bucket.full(rate=rate, capacity=capacity, now=now)
    for passed, count in steps:
        now += passed
        if bucket.wait(count, now) == 0:
            bucket.take(count)
            given_out, largest = given_out + count, max(largest, count)
        else:
            assert bucket.wait(count, now + bucket.wait(count, now) * 1.000001 + 1e-6) == 0
            now = bucket.at
    assert given_out <= capacity + rate * now * 1.0001 + max(0, largest - capacity) + 1e-6
