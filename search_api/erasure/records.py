"""Erasures as rows of the control index: what was asked, how much there was, and the receipt. Ids, never a text."""

from __future__ import annotations

from typing import Final

import msgspec

from indexers.domain.identity import Principal, Scope, TenantId
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import ControlRow, Index
from search_api.erasure.receipt import Receipt

ERASURE: Final = "erasure"


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """`removed`: rows and files that there were when it was asked for."""

    erasure_id: str
    requested_by: str
    requested_at: str
    doc_ids: list[str]
    removed: dict[str, int]
    more: bool = False
    receipt: Receipt | None = None


async def store(gate: Gate, tenant_id: TenantId, erasure: Erasure, *, at: str, version: int) -> None:
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


async def read(gate: Gate, principal: Principal, erasure_id: str) -> Erasure | None:
    """None: there is none, or not one that this principal may see."""
    ref = RowRef(principal=principal, row_id=_row_id(erasure_id))
    [row] = await gate.get_many(Index.CONTROL, [ref])
    return None if row is None else msgspec.convert(row.source["value"], Erasure)


def _row_id(erasure_id: str) -> str:
    return f"{ERASURE}/{erasure_id}"
