"""How much a tenant may ask and write: token buckets in this process. With several replicas each has its own."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import Counter

from indexers.domain.identity import Principal, TenantId
from search_api.problems import Problem, ProblemError, unavailable
from search_api.settings import LimitsSettings

#: Tenants whose buckets are kept. The one that asked longest ago is forgotten, and begins anew with full buckets.
_TENANTS_MAX: Final = 10_000
_DAY_SECONDS: Final = 86_400.0
#: The longest that anybody is told to wait: rates may be tiny.
_WAIT_MAX_SECONDS: Final = 7 * _DAY_SECONDS

Kind = Literal["requests", "writes", "bytes"]


@dataclass(slots=True, kw_only=True)
class Bucket:
    """Tokens that come back at `rate` a second, up to `capacity`. Times are seconds of one clock.

    More than `capacity` at once is given when the bucket is full, as a debt that the next ones wait for: a batch
    larger than the burst is late, not impossible.
    """

    rate: float
    capacity: float
    tokens: float
    at: float

    @classmethod
    def full(cls, *, rate: float, capacity: float, now: float) -> Bucket:
        return cls(rate=rate, capacity=capacity, tokens=capacity, at=now)

    def wait(self, count: float, now: float) -> float:
        """Seconds until `count` may be taken; 0: now."""
        self._refill(now)
        missing = min(count, self.capacity) - self.tokens
        return 0.0 if missing <= 0 else missing / self.rate

    def take(self, count: float) -> None:
        """After `wait` said 0."""
        self.tokens -= count

    def resized(self, *, rate: float, capacity: float, now: float) -> Bucket:
        """The same use under other limits: what was spent stays spent, up to the whole of a smaller bucket."""
        self._refill(now)
        tokens = max(min(self.tokens, 0.0), capacity - (self.capacity - self.tokens))
        return Bucket(rate=rate, capacity=capacity, tokens=tokens, at=now)

    def _refill(self, now: float) -> None:
        if now > self.at:
            self.tokens = min(self.capacity, self.tokens + (now - self.at) * self.rate)
            self.at = now


@dataclass(slots=True, kw_only=True)
class _Tenant:
    """Limits in force and the buckets that follow from them; no bucket where a limit is off."""

    limits: LimitsSettings
    buckets: dict[Kind, Bucket]


class Quotas:
    """Buckets by tenant. Raises ProblemError: 429 with `Retry-After`. Not thread-safe: one event loop.

    `clock`: seconds that never go back. `refusals`: a counter with the label `kind`.
    """

    def __init__(
        self,
        settings: LimitsSettings,
        *,
        refusals: Counter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._refusals = refusals
        self._clock = clock
        self._tenants: OrderedDict[TenantId, _Tenant] = OrderedDict()

    @property
    def settings(self) -> LimitsSettings:
        """The limits of tenants that have none of their own."""
        return self._settings

    def assign(self, tenant_id: TenantId, limits: LimitsSettings) -> None:
        """The tenant's own limits from now on."""
        known = self._tenants.get(tenant_id)
        if known is None or (known.limits is not limits and known.limits != limits):
            self._remember(tenant_id, _under(limits, known, self._clock()))

    def take_request(self, principal: Principal) -> None:
        self._take(principal, (("requests", 1),))

    def take_write(self, principal: Principal, *, bytes_: int, writes: int = 1) -> None:
        """Both or nothing. `bytes_`: of all the texts that are to be written."""
        self._take(principal, (("writes", writes), ("bytes", bytes_)))

    def _take(self, principal: Principal, wanted: Sequence[tuple[Kind, int]]) -> None:
        tenant = self._of(principal.tenant_id)
        now = self._clock()
        asked = [(kind, tenant.buckets[kind], count) for kind, count in wanted if kind in tenant.buckets]
        for kind, bucket, count in asked:
            seconds = bucket.wait(count, now)
            if seconds > 0:
                self._refusals.labels(kind=kind).inc()
                raise ProblemError(_refusal(kind, tenant.limits, seconds))
        for _, bucket, count in asked:
            bucket.take(count)

    def _of(self, tenant_id: TenantId) -> _Tenant:
        known = self._tenants.get(tenant_id)
        if known is None:
            return self._remember(tenant_id, _under(self._settings, None, self._clock()))
        self._tenants.move_to_end(tenant_id)
        return known

    def _remember(self, tenant_id: TenantId, tenant: _Tenant) -> _Tenant:
        self._tenants[tenant_id] = tenant
        self._tenants.move_to_end(tenant_id)
        if len(self._tenants) > _TENANTS_MAX:
            self._tenants.popitem(last=False)
        return tenant


def _under(limits: LimitsSettings, before: _Tenant | None, now: float) -> _Tenant:
    rates: dict[Kind, tuple[float, float]] = {
        "requests": (limits.requests_per_second, limits.requests_burst),
        "writes": (limits.writes_per_second, limits.writes_burst),
        "bytes": (limits.bytes_per_day / _DAY_SECONDS, limits.bytes_per_day),
    }
    buckets: dict[Kind, Bucket] = {}
    for kind, (rate, capacity) in rates.items():
        old = None if before is None else before.buckets.get(kind)
        if rate > 0 and old is not None:
            buckets[kind] = old.resized(rate=rate, capacity=capacity, now=now)
        elif rate > 0:
            buckets[kind] = Bucket.full(rate=rate, capacity=capacity, now=now)
    return _Tenant(limits=limits, buckets=buckets)


def _refusal(kind: Kind, limits: LimitsSettings, seconds: float) -> Problem:
    match kind:
        case "requests":
            what = f"{limits.requests_per_second:g} requests a second"
        case "writes":
            what = f"{limits.writes_per_second:g} writes a second"
        case "bytes":
            what = f"{limits.bytes_per_day} bytes written a day"
    detail = f"The tenant's limit is {what}. Try again after `Retry-After` seconds."
    return unavailable(
        "rate-limited" if kind == "requests" else "quota-exceeded", detail, min(seconds, _WAIT_MAX_SECONDS)
    )
