"""Whether another worker was at the same names while a batch was settled: only then need they be looked at again.

The partition moved, say, and its former owner is still at its last batch. Sequence numbers of a tenant's rows only
grow and become visible in their order, so what others wrote since the first look shows among the newest names. What
others deleted doesn't; a name that ours point to is therefore read once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from indexers.domain.identity import EntityNamespace, Principal, TenantId
from indexers.opensearch.gate import Gate, GatedSearch, RowRef, RowWrite, WriteResult
from indexers.opensearch.rows import EntityRow, Index, ProposalRow
from streams.agents.link.closing import in_label
from streams.agents.link.decode import Place
from streams.agents.link.work import LabelWork

#: With more names written at once a second look costs less than reading them.
NAMES_MAX: Final = 2_000
#: A place without a name.
NONE: Final = -1

Written = Sequence[tuple[RowWrite, WriteResult]]


async def newest_names(gate: Gate, works: Sequence[LabelWork]) -> dict[Place, int]:
    """Sequence number of the newest name that a search shows, by place."""
    pages = await gate.search_many([_newest(work, 1) for work in works]) if works else []
    return {
        work.place: page.hits[0].seq_no if page.hits else NONE
        for work, page in zip(works, pages, strict=True)
    }


async def places_met(
    gate: Gate, works: Sequence[LabelWork], before: dict[Place, int], written: Written
) -> set[Place]:
    """Places of `works` where others may have written. `before`: at the first look; names are refreshed since."""
    own: dict[Place, dict[str, int | None]] = {work.place: {} for work in works}
    for write, result in written:
        if isinstance(write.row, EntityRow) and (place := _place(write.row)) in own:
            own[place][write.row_id] = result.seq_no
    many = {place for place, names in own.items() if len(names) > NAMES_MAX}
    few = [work for work in works if work.place not in many]
    pages = await gate.search_many([_newest(work, len(own[work.place]) + 1) for work in few]) if few else []
    foreign = {
        work.place
        for work, page in zip(few, pages, strict=True)
        if any(
            hit.seq_no > before[work.place] and own[work.place].get(hit.row_id) != hit.seq_no
            for hit in page.hits
        )
    }
    return many | foreign | await _lost_targets(gate, few, written, own)


async def _lost_targets(
    gate: Gate, works: Sequence[LabelWork], written: Written, own: dict[Place, dict[str, int | None]]
) -> set[Place]:
    """Places where a name that a row of ours points to is gone or another by now."""
    by_place = {work.place: work for work in works}
    pointed: defaultdict[Place, set[str]] = defaultdict(set)
    for write, _ in written:
        if isinstance(write.row, EntityRow | ProposalRow) and (place := _place(write.row)) in by_place:
            pointed[place] |= _targets(write.row) - own[place].keys()
    asked = [(place, name_id) for place, ids in pointed.items() for name_id in sorted(ids)]
    refs = [RowRef(principal=Principal.pipeline(place.tenant_id), row_id=name_id) for place, name_id in asked]
    rows = await gate.get_many(Index.ENTITIES, refs, fields=("key",)) if refs else []
    lost: set[Place] = set()
    for (place, _), row in zip(asked, rows, strict=True):
        known = None if row is None else by_place[place].stored.get(row.source["key"])
        if row is None or (known is not None and known.seq_no != row.seq_no):
            lost.add(place)
    return lost


def _newest(work: LabelWork, size: int) -> GatedSearch:
    body: dict[str, Any] = {
        "query": in_label(work, {"match_all": {}}),
        "size": size,
        "sort": [{"_seq_no": "desc"}],
        "_source": ["key"],
        "track_total_hits": False,
    }
    return GatedSearch(principal=work.principal, index=Index.ENTITIES, body=body)


def _place(row: EntityRow | ProposalRow) -> Place:
    namespace = EntityNamespace(tenant_id=TenantId(row.tenant_id), owner=row.namespace)
    return Place(namespace=namespace, label=row.label)


def _targets(row: EntityRow | ProposalRow) -> set[str]:
    if isinstance(row, EntityRow):
        return {row.likeness_id, row.entity_id}
    return {row.entity_id, row.other_id}
