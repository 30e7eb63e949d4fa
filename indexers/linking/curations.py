"""Commands of curators as they stand in the index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from indexers.domain.entities.curation import CurationOp
from indexers.domain.identity import EntityNamespace, Principal, TenantId
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import CurationRow, Index
from indexers.opensearch.visibility import Query

#: A label of a namespace.
Labelled = tuple[EntityNamespace, str]


async def read_curations(gate: Gate, places: Sequence[Labelled]) -> dict[Labelled, list[CurationOp]]:
    """All commands about each of these labels; they are few. The caller has refreshed."""
    by_tenant: defaultdict[TenantId, list[Labelled]] = defaultdict(list)
    for place in places:
        by_tenant[place[0].tenant_id].append(place)
    wanted = [_wanted(tenant_id, members) for tenant_id, members in by_tenant.items()]
    found: dict[Labelled, list[CurationOp]] = {place: [] for place in places}
    for tenant_id, rows in zip(by_tenant, await find_all(gate, wanted), strict=True):
        for hit in rows:
            row = msgspec.convert(hit.source, CurationRow)
            place = (EntityNamespace(tenant_id=tenant_id, owner=row.namespace), row.label)
            if place in found:
                found[place].append(op_of(row))
    return found


async def curations_of(gate: Gate, namespace: EntityNamespace, label: str) -> list[CurationOp]:
    return (await read_curations(gate, [(namespace, label)]))[namespace, label]


def op_of(row: CurationRow) -> CurationOp:
    return CurationOp(
        event_id=row.event_id,
        version=row.version,
        kind=row.kind,  # type: ignore[arg-type]  # rows are written from the closed set
        keys=tuple(row.keys),
        name=row.name,
        undoes=row.undoes,
    )


def _wanted(tenant_id: TenantId, places: Sequence[Labelled]) -> Wanted:
    terms: list[Query] = [
        {"terms": {"namespace": sorted({namespace.owner for namespace, _ in places})}},
        {"terms": {"label": sorted({label for _, label in places})}},
    ]
    return Wanted(
        principal=Principal.pipeline(tenant_id), index=Index.CURATION, query={"bool": {"filter": terms}}
    )
