"""The audit log: admin actions and refusals, as rows of the tenant and as log lines. Never a memory's text or a key.

Rows are written beside the requests, in batches. The queue is bounded: what doesn't fit is in the log alone, counted.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal

import msgspec
import structlog

from indexers.backoff import full_jitter
from indexers.domain.identity import KEEPER, Namespace, Principal, Scope, TenantId
from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import ControlRow, Index, owner_fields
from search_api.metrics import ApiMetrics
from streams.events import new_event_id, now_iso

log = structlog.get_logger()

KIND: Final = "audit"
QUEUE_MAX: Final = 10_000
_BATCH_ROWS: Final = 500
_CLOSE_SECONDS: Final = 3.0

Action = Literal[
    "key.create",
    "key.rotate",
    "key.revoke",
    "tenant.create",
    "tenant.change",
    "document.erase",
    "query.erase",
    "tenant.erase",
    "request.denied",
    "request.cross_tenant",
]
Outcome = Literal["done", "denied"]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`tenant`: whose log it stands in; `by_…`: who acted. `target`: an id, a label or a route, never what is said."""

    entry_id: str
    at: str
    tenant: str
    by_tenant: str
    by_agent: str
    by_key: str | None
    action: Action
    outcome: Outcome
    target: str
    request_id: str
    detail: Mapping[str, str]


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts in one request."""

    principal: Principal
    key_id: str | None
    request_id: str


class Audit:
    """`record` never waits and never raises."""

    def __init__(self, gate: Gate, metrics: ApiMetrics) -> None:
        self._gate = gate
        self._metrics = metrics
        self._waiting: deque[AuditEntry] = deque()
        self._filled = asyncio.Event()

    def record(
        self,
        actor: Actor,
        action: Action,
        *,
        target: str,
        outcome: Outcome = "done",
        tenant: str | None = None,
        detail: Mapping[str, str] | None = None,
    ) -> None:
        """`tenant`: whose affair it is, if another's than the actor's: then it stands in both logs."""
        own = actor.principal.tenant_id
        for home in dict.fromkeys((own, tenant or own)):
            entry = AuditEntry(
                entry_id=new_event_id(),
                at=now_iso(),
                tenant=home,
                by_tenant=own,
                by_agent=actor.principal.agent_id,
                by_key=actor.key_id,
                action=action,
                outcome=outcome,
                target=target,
                request_id=actor.request_id,
                detail=detail or {},
            )
            self._take(entry)

    @property
    def waiting(self) -> tuple[AuditEntry, ...]:
        """What isn't in the store yet."""
        return tuple(self._waiting)

    async def run(self) -> None:
        """Until cancelled. What the store can't take now is tried again for as long as the queue holds it."""
        attempt = 0
        while True:
            await self._filled.wait()
            try:
                await self._write_some()
                attempt = 0
            except Transient as fault:
                attempt += 1
                log.warning("audit.waits", reason=fault.reason, entries=len(self._waiting))
                seconds = full_jitter(
                    attempt,
                    base_seconds=0.5,
                    cap_seconds=10.0,
                    jitter=random.random(),  # noqa: S311 - no secret
                )
                await asyncio.sleep(seconds)

    async def drain(self) -> None:
        """All that waits is written. Raises Transient."""
        while self._waiting:
            await self._write_some()

    def _take(self, entry: AuditEntry) -> None:
        log.info("audit", **msgspec.structs.asdict(entry))
        if len(self._waiting) >= QUEUE_MAX:
            self._metrics.audit_entries.labels(outcome="dropped").inc()
            return
        self._waiting.append(entry)
        self._filled.set()

    async def _write_some(self) -> None:
        batch = [self._waiting[place] for place in range(min(_BATCH_ROWS, len(self._waiting)))]
        try:
            results = await self._gate.write([_write(entry) for entry in batch])
        except RefusedRequest as fault:
            raise Transient(str(fault)) from fault
        for result in results:
            # A conflict: it was written by a request whose answer got lost.
            outcome = "dropped" if result.status == "rejected" else "written"
            self._metrics.audit_entries.labels(outcome=outcome).inc()
        self._forget(batch)

    def _forget(self, batch: Sequence[AuditEntry]) -> None:
        """`run` and `drain` may have had the same batch."""
        done = {entry.entry_id for entry in batch}
        while self._waiting and self._waiting[0].entry_id in done:
            self._waiting.popleft()
        if not self._waiting:
            self._filled.clear()


@asynccontextmanager
async def opened_audit(gate: Gate, metrics: ApiMetrics) -> AsyncIterator[Audit]:
    """Writes until the end, and then what still waits, if the store takes it soon."""
    audit = Audit(gate, metrics)
    writing = asyncio.create_task(audit.run())
    try:
        yield audit
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        with suppress(Transient, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await audit.drain()


def _write(entry: AuditEntry) -> RowWrite:
    tenant_id = TenantId(entry.tenant)
    owner = Namespace(tenant_id=tenant_id, agent_id=KEEPER, scope=Scope.SHARED)
    row = ControlRow(
        **owner_fields(owner),
        kind=KIND,
        name=entry.entry_id,
        value=msgspec.to_builtins(entry),
        version=1,
        updated_by=f"{entry.by_tenant}/{entry.by_agent}",
        updated_at=entry.at,
    )
    return RowWrite(
        principal=Principal.pipeline(tenant_id),
        index=Index.CONTROL,
        row_id=f"{KIND}/{entry.entry_id}",
        action="create",
        row=row,
    )
