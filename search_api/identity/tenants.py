"""How a tenant stands: whether it may ask at all, and its limits. Looked up beside the requests, every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import structlog

from indexers.domain.identity import TenantId
from search_api.identity.lookup import CachedLookup
from search_api.identity.register import Register
from search_api.identity.stored import StoredTenant
from search_api.settings import LimitsSettings

log = structlog.get_logger()

_ENTRIES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`unregistered`: nobody has entered it; a key in the key file may name such a tenant."""

    state: Literal["active", "suspended", "deleted", "unregistered"]
    limits: LimitsSettings


class Tenants:
    """Raises Transient where only the store could tell."""

    def __init__(
        self,
        register: Register[StoredTenant],
        defaults: LimitsSettings,
        *,
        ttl_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._register = register
        self._defaults = defaults
        self._unregistered = Standing(state="unregistered", limits=defaults)
        self._standings = CachedLookup(self._fetch, ttl_seconds=ttl_seconds, entries=_ENTRIES, clock=clock)

    async def standing(self, tenant_id: TenantId) -> Standing:
        return await self._standings.get(tenant_id) or self._unregistered

    def last_known(self, tenant_id: TenantId) -> Standing:
        """For who can be known without the store."""
        return self._standings.last_known(tenant_id) or self._unregistered

    def forget(self, tenant_id: str) -> None:
        """It was changed here: the next request looks it up."""
        self._standings.forget(tenant_id)

    async def close(self) -> None:
        await self._standings.close()

    async def _fetch(self, tenant_id: str) -> Standing:
        try:
            found = await self._register.read(tenant_id)
        except ValueError as fault:
            # Whether it is suspended can't be read: then it is.
            log.error("tenant.unreadable", tenant=tenant_id, error=str(fault))  # noqa: TRY400 - the text says all
            return Standing(state="suspended", limits=self._defaults)
        if found is None:
            return self._unregistered
        try:
            limits = found.value.limits_over(self._defaults)
        except ValueError as fault:
            log.warning("tenant.limits_refused", tenant=tenant_id, error=str(fault))
            limits = self._defaults
        return Standing(state=found.value.state, limits=limits)
