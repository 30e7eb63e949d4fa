"""The end of tombstones and event rows: once nothing older can come any more, neither need be remembered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from indexers.domain.identity import Namespace, Principal, TenantId
from indexers.event_rows import KEPT_DAYS
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import owned_by

#: Most tombstones dropped after one scan; what is left is dropped after the next ones.
PURGE_ROWS: Final = 1_000
EVENTS_EVERY: Final = timedelta(hours=1)


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstones:
    """As the root's own principal, through the gate."""

    gate: Gate
    now: Callable[[], datetime] = _utc_now
    most: int = PURGE_ROWS
    _events_at: dict[TenantId, datetime] = field(default_factory=dict)

    async def purge(self, namespace: Namespace) -> int:
        """Drop expired tombstones and the gate rows of the same documents; the number of tombstones.

        Gate rows first: a tombstone that outlives its gate row still refuses what is older, and is found again.
        Rows of the tenant's events go with them, once an hour.
        """
        await self.purge_events(namespace.tenant_id)
        expired = self._expired(namespace)
        found: list[str] = []
        async with aclosing(
            self.gate.scan(namespace.principal, Index.DOCUMENTS, expired, fields=("doc_id",))
        ) as rows:
            async for row in rows:
                found.append(row.source["doc_id"])
                if len(found) >= self.most:
                    break
        if not found:
            return 0
        these = {"terms": {"doc_id": found}}
        gates = _both(owned_by(namespace, deleted=True), these)
        await self.gate.delete_matching(namespace.principal, Index.GATE, gates)
        # Asked again as a whole: a document that came back meanwhile, or was deleted anew, is no match.
        return await self.gate.delete_matching(namespace.principal, Index.DOCUMENTS, _both(expired, these))

    async def purge_events(self, tenant_id: TenantId) -> int:
        """Drop the rows of events that are older than the topics keep them; their number."""
        now = self.now()
        if now - self._events_at.get(tenant_id, datetime.min.replace(tzinfo=UTC)) < EVENTS_EVERY:
            return 0
        self._events_at[tenant_id] = now
        until = (now - timedelta(days=KEPT_DAYS)).isoformat(timespec="milliseconds")
        old = {"range": {"at": {"lt": until}}}
        principal = Principal.pipeline(tenant_id)
        if not await self.gate.count(principal, Index.EVENTS, old):
            return 0
        return await self.gate.delete_matching(principal, Index.EVENTS, old)

    def _expired(self, namespace: Namespace) -> dict[str, Any]:
        until = {"range": {"tombstone_until": {"lt": self.now().isoformat(timespec="milliseconds")}}}
        return _both(owned_by(namespace, deleted=True), until)


def _both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [first, second]}}
