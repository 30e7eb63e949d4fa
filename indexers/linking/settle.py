"""Point links to where the index says they lead, while others do the same.

Each writer writes its own rows, refreshes, and looks; a changed link is replaced only as the row that was
read, and looked at once more after the write, until a look changes nothing. So of two writers whoever looks
last sees both, and none can leave a link as an older look had it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import msgspec

from indexers.domain.identity import Principal, TenantId
from indexers.domain.links import Resolution
from indexers.errors import Transient
from indexers.linking.sources import StoredLink, stored_link
from indexers.linking.targets import resolve_rows
from indexers.opensearch.gate import Gate, RowRef, RowWrite, WriteResult
from indexers.opensearch.rows import Index, LinkRow

#: Writers that meet on one link more often than this let the batch begin again.
ROUNDS_MAX = 30


async def settle(gate: Gate, tenant_id: TenantId, links: Sequence[StoredLink]) -> int:
    """Number of rows replaced. The caller has refreshed documents after its own last write to them."""
    replaced = 0
    pending = list(links)
    for attempt in range(ROUNDS_MAX):
        resolutions = await resolve_rows(gate, tenant_id, [link.row for link in pending])
        changes = [
            (link, row)
            for link, resolution in zip(pending, resolutions, strict=True)
            if (row := resolved_row(link.row, resolution)) != link.row
        ]
        if not changes:
            return replaced
        results = await gate.write([_replacement(tenant_id, link, row) for link, row in changes])
        replaced += sum(result.status == "applied" for result in results)
        pending = await _to_look_at_again(gate, tenant_id, changes, results)
        if any(result.status != "applied" for result in results):
            await asyncio.sleep(random.uniform(0, 0.02 * (attempt + 1)))  # noqa: S311 - jitter, no secret
        await gate.refresh(Index.DOCUMENTS)
    msg = f"links kept changing under {ROUNDS_MAX} looks"
    raise Transient(msg)


def resolved_row(row: LinkRow, resolution: Resolution) -> LinkRow:
    """The row as it shall be; equal to `row` when nothing is to be done."""
    return msgspec.structs.replace(
        row,
        to_doc_id=resolution.to_doc_id,
        resolved=resolution.to_doc_id is not None,
        ambiguous=resolution.ambiguous,
    )


async def read_links(gate: Gate, tenant_id: TenantId, row_ids: Sequence[str]) -> list[StoredLink]:
    """Rows as they stand now (realtime); those that are gone are left out."""
    principal = Principal.pipeline(tenant_id)
    found = await gate.get_many(
        Index.LINKS, [RowRef(principal=principal, row_id=row_id) for row_id in row_ids]
    )
    return [
        stored_link(row.row_id, row.source, row.seq_no, row.primary_term) for row in found if row is not None
    ]


async def _to_look_at_again(
    gate: Gate,
    tenant_id: TenantId,
    changes: Sequence[tuple[StoredLink, LinkRow]],
    results: Sequence[WriteResult],
) -> list[StoredLink]:
    again: list[StoredLink] = []
    lost: list[str] = []
    for (link, row), result in zip(changes, results, strict=True):
        if result.status == "applied" and result.seq_no is not None and result.primary_term is not None:
            again.append(
                StoredLink(
                    row_id=link.row_id, row=row, seq_no=result.seq_no, primary_term=result.primary_term
                )
            )
        elif result.status == "rejected":
            msg = f"the store refused a link row that it had taken before: {result.reason}"
            raise ValueError(msg)
        else:
            lost.append(link.row_id)
    return again + (await read_links(gate, tenant_id, lost) if lost else [])


def _replacement(tenant_id: TenantId, link: StoredLink, row: LinkRow) -> RowWrite:
    return RowWrite(
        principal=Principal.pipeline(tenant_id),
        index=Index.LINKS,
        row_id=link.row_id,
        action="replace_if",
        row=row,
        seq_no=link.seq_no,
        primary_term=link.primary_term,
    )
