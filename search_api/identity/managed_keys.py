"""Keys of the register, as requests need them: checked in microseconds once they were looked up."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog

from search_api.identity.key_text import KeyDigester
from search_api.identity.lookup import CachedLookup
from search_api.identity.refusals import BUSY, Refused
from search_api.identity.register import Register
from search_api.identity.stored import StoredKey
from search_api.quotas import Bucket

log = structlog.get_logger()

_ENTRIES: Final = 10_000
#: Look-ups of ids that nobody asked for lately: made-up keys may cost the store so much, and no more.
_NEW_PER_SECOND: Final = 500.0
_NEW_BURST: Final = 1_000
#: Compared with where there is no such key, so that both ways do the same.
_NOBODY: Final = StoredKey(
    key_id="0" * 16,
    tenant="nobody",
    agent="nobody",
    digest="0" * 64,
    created_at=datetime.min.replace(tzinfo=UTC),
    created_by="",
)


class ManagedKeys:
    """Raises Refused, or Transient where only the store could tell."""

    def __init__(
        self,
        register: Register[StoredKey],
        digester: KeyDigester,
        *,
        ttl_seconds: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._register = register
        self._digester = digester
        self._now = now
        self._clock = clock
        self._rows = CachedLookup(self._fetch, ttl_seconds=ttl_seconds, entries=_ENTRIES, clock=clock)
        self._new = Bucket.full(rate=_NEW_PER_SECOND, capacity=_NEW_BURST, now=clock())

    async def find(self, text: str, key_id: str) -> StoredKey:
        """`key_id`: as it stands in the text."""
        digest = self._digester.digest(text)
        if self._rows.is_new(key_id):
            if self._new.wait(1, self._clock()) > 0:
                raise Refused("busy", BUSY)
            self._new.take(1)
        stored = await self._rows.get(key_id)
        now = self._now()
        key = stored or _NOBODY
        if not key.has_digest(digest, now) or stored is None:
            raise Refused("unknown")
        state = key.state(now)
        if state != "active":
            raise Refused(state)
        return key

    def forget(self, key_id: str) -> None:
        """It was changed here: the next request looks it up."""
        self._rows.forget(key_id)

    async def close(self) -> None:
        await self._rows.close()

    async def _fetch(self, key_id: str) -> StoredKey | None:
        try:
            found = await self._register.read(key_id)
            if found is not None:
                _ = found.value.principal
        except ValueError as fault:
            # Written by something else than the admin routes: it opens nothing.
            log.error("key.unreadable", key_id=key_id, error=str(fault))  # noqa: TRY400 - the text says all
            return None
        return None if found is None else found.value
