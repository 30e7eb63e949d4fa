"""Which erasures are under way, over all tenants: a note for each, under the reserved tenant of the installation.

An erasure's own row is its tenant's, and nobody looks through all tenants. A note holds ids and a time, never a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import INSTALLATION, KEEPER, Namespace, Principal, Scope, TenantId
from indexers.erasures import Erasure
from indexers.opensearch.gate import Gate, GatedSearch, RowWrite
from indexers.opensearch.rows import ControlRow, Index, owner_fields

KIND: Final = "open_erasure"
_KEEPER: Final = Principal.pipeline(INSTALLATION)
_OWNER: Final = Namespace(tenant_id=INSTALLATION, agent_id=KEEPER, scope=Scope.SHARED)
#: A note is written once and removed once.
_WRITTEN, _REMOVED = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """`requested_at`: ISO 8601."""

    erasure_id: str
    tenant_id: TenantId
    requested_at: str


async def note_open(gate: Gate, tenant_id: TenantId, erasure: Erasure) -> None:
    """Before the erasure's own row: one that is under way must not go unseen. Raises ValueError where it is refused."""
    row = ControlRow(
        **owner_fields(_OWNER),
        kind=KIND,
        name=erasure.erasure_id,
        value={"tenant": tenant_id, "requested_at": erasure.requested_at},
        version=_WRITTEN,
        updated_by=KEEPER,
        updated_at=erasure.requested_at,
    )
    write = RowWrite(
        principal=_KEEPER,
        index=Index.CONTROL,
        row_id=_row_id(erasure.erasure_id),
        action="index",
        row=row,
        version=_WRITTEN,
    )
    [result] = await gate.write([write])
    if result.status == "rejected":
        raise ValueError(result.reason)


async def note_closed(gate: Gate, erasure_ids: Sequence[str]) -> None:
    """A note that is gone already is no fault."""
    removals = [
        RowWrite(
            principal=_KEEPER,
            index=Index.CONTROL,
            row_id=_row_id(erasure_id),
            action="delete",
            version=_REMOVED,
        )
        for erasure_id in erasure_ids
    ]
    if removals:
        await gate.write(removals)


async def open_notes(gate: Gate, *, most: int) -> tuple[list[Note], int]:
    """The oldest notes, and how many there are in all."""
    await gate.refresh(Index.CONTROL)
    body = {
        "query": {"term": {"kind": KIND}},
        "sort": [{"updated_at": "asc"}, {"name": "asc"}],
        "size": most,
        "track_total_hits": True,
    }
    [page] = await gate.search_many([GatedSearch(principal=_KEEPER, index=Index.CONTROL, body=body)])
    notes = [
        Note(
            erasure_id=hit.source["name"],
            tenant_id=TenantId(hit.source["value"]["tenant"]),
            requested_at=hit.source["value"]["requested_at"],
        )
        for hit in page.hits
    ]
    return notes, page.total


def _row_id(erasure_id: str) -> str:
    return f"{KIND}/{erasure_id}"
