"""Erasures as rows of the control index: what was asked for, how much there was, the receipt. Ids, never a text.

A rebuild drops what keeps a replayed event of an erased document out; these rows bring it back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from indexers.bookkeeping import fence_rows
from indexers.domain.identity import Principal, Scope, TenantId
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import ControlRow, Index

ERASURE: Final = "erasure"
_ROWS_AT_ONCE: Final = 500


class ErasedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Whose it was, and the version of its erasure: no older event may bring it back."""

    doc_id: str
    agent_id: str
    team_id: str | None
    scope: str
    version: int


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """`removed`: rows and files that there were when it was asked for. `receipt`: of a complete one."""

    erasure_id: str
    requested_by: str
    requested_at: str
    documents: list[ErasedDocument]
    removed: dict[str, int]
    more: bool = False
    receipt: dict[str, Any] | None = None

    @property
    def doc_ids(self) -> list[str]:
        return [document.doc_id for document in self.documents]


async def store_erasure(gate: Gate, tenant_id: TenantId, erasure: Erasure, *, at: str, version: int) -> None:
    """As it is now; the row of a complete one replaces that of a pending one."""
    row = ControlRow(
        tenant_id=tenant_id,
        agent_id=erasure.requested_by,
        team_id=None,
        scope=Scope.PERSONAL.value,
        kind=ERASURE,
        name=erasure.erasure_id,
        value=msgspec.to_builtins(erasure),
        version=version,
        updated_by=erasure.requested_by,
        updated_at=at,
    )
    write = RowWrite(
        principal=Principal.pipeline(tenant_id),
        index=Index.CONTROL,
        row_id=_row_id(erasure.erasure_id),
        action="index",
        row=row,
        version=version,
    )
    [result] = await gate.write([write])
    if result.status == "rejected":
        raise ValueError(result.reason)


async def read_erasure(gate: Gate, principal: Principal, erasure_id: str) -> Erasure | None:
    """None: there is none, or not one that this principal may see."""
    [row] = await gate.get_many(Index.CONTROL, [RowRef(principal=principal, row_id=_row_id(erasure_id))])
    return None if row is None else msgspec.convert(row.source["value"], Erasure)


async def open_erasure(gate: Gate, tenant_id: TenantId) -> Erasure | None:
    """The first of the tenant's that has no receipt yet."""
    await gate.refresh(Index.CONTROL)
    async with aclosing(_erasures(gate, tenant_id)) as found:
        async for erasure in found:
            if erasure.receipt is None:
                return erasure
    return None


async def restore_fences(gate: Gate, tenant_id: TenantId, *, days: int, now: datetime) -> int:
    """Fences of the tenant's erasures of the last `days`, where no newer row stands; how many documents."""
    writes: list[RowWrite] = []
    async for erasure in _erasures(gate, tenant_id):
        ends = datetime.fromisoformat(erasure.requested_at) + timedelta(days=days)
        if ends > now:
            for document in erasure.documents:
                writes += fence_rows(document, tenant_id, at=erasure.requested_at, until=ends.isoformat())
    for start in range(0, len(writes), _ROWS_AT_ONCE):
        await gate.write(writes[start : start + _ROWS_AT_ONCE])
    return len(writes) // 2


async def _erasures(gate: Gate, tenant_id: TenantId) -> AsyncGenerator[Erasure, None]:
    principal = Principal.pipeline(tenant_id)
    query = {"term": {"kind": ERASURE}}
    async with aclosing(gate.scan(principal, Index.CONTROL, query, fields=("value",))) as scan:
        async for row in scan:
            yield msgspec.convert(row.source["value"], Erasure)


def _row_id(erasure_id: str) -> str:
    return f"{ERASURE}/{erasure_id}"
