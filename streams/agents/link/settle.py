"""Names, entities and proposals as they follow from the edges and from what curators decided.

All of it is a function of the sets (names with edges, commands), so repeating it changes nothing, and a part that a
crash left undone is done by the repeated batch. To that end the rows of names that come or go are written last: while
one is not as it shall be, its whole neighbourhood is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from indexers.domain.entities.curation import CurationOp, keys_concerned
from indexers.domain.identity import NameId, Principal, TenantId
from indexers.errors import PoisonRecord, Transient
from indexers.linking.counts import NameCount, count_documents, count_names
from indexers.linking.entity_rows import CountedName
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import CurationRow, EntityRow, Index
from indexers.opensearch.visibility import Query
from streams.agents.link.changes import Settled, changes_of
from streams.agents.link.closing import Closure, close_entities, read_names
from streams.agents.link.decode import Command, Place
from streams.agents.link.edges import Edges
from streams.agents.link.likeness import relike
from streams.agents.link.proposing import due_proposals, shifted_roots
from streams.agents.link.work import LabelWork

#: Workers that meet on names more often than this let the batch begin again.
LOOKS_MAX: Final = 10

Excluded = Mapping[TenantId, Sequence[Query]]


async def settle_names(gate: Gate, edges: Edges, commands: Sequence[Command]) -> Settled:
    """Raises Transient where another writer was at the same rows: then all of it is looked at again.

    The caller has refreshed all indices of entities after its last write to them. Where names came or went, they are
    looked at once more after the write, until a look changes nothing: of two workers that overlap for a while, each
    with a name that is like the other's, whoever looks last sees both.
    """
    works = _works(edges, commands)
    settled = Settled()
    for _ in range(LOOKS_MAX):
        if not works:
            return settled
        works = await _look(gate, works, edges.excluded, settled)
    msg = f"names kept changing under {LOOKS_MAX} looks"
    raise Transient(msg)


async def _look(
    gate: Gate, works: Sequence[LabelWork], excluded: Excluded, settled: Settled
) -> list[LabelWork]:
    """What is to be looked at once more."""
    await _read_curation(gate, works)
    # Rows are read before their edges are counted: a row that is replaced is one that knew no later edge.
    await read_names(
        gate, [(work, {work.name_id(k) for k in work.asked | work.merged_keys}) for work in works]
    )
    await _count(gate, [(work, work.asked) for work in works], excluded)
    await relike(gate, [(work, work.come_or_gone | work.curated) for work in works])
    closures = await close_entities(gate, works)
    await relike(gate, [(closure.work, shifted_roots(closure)) for closure in closures])
    proposing = await due_proposals(gate, closures)
    rows = await _due_names(gate, closures, excluded)
    changes = changes_of(closures, rows, proposing)
    await _write(gate, changes.early)
    await _write(gate, changes.late)
    if changes.early or changes.late:
        await gate.refresh(Index.ENTITIES, Index.PROPOSALS)
    settled.add(changes)
    again = [(work, work.come_or_gone | work.curated) for work in works if work.place in changes.places]
    return [LabelWork(place=work.place, asked=set(keys), curated=keys) for work, keys in again if keys]


def _works(edges: Edges, commands: Sequence[Command]) -> list[LabelWork]:
    asked: defaultdict[Place, set[str]] = defaultdict(set)
    for place, keys in edges.affected.items():
        asked[place] |= keys
    for command in commands:
        asked[command.place] |= set()
    works = {place: LabelWork(place=place, asked=keys, curated=set()) for place, keys in asked.items()}
    for command in commands:
        works[command.place].commands.append(command.op)
    return list(works.values())


async def _read_curation(gate: Gate, works: Sequence[LabelWork]) -> None:
    """Commands are few: all of a label are read, and folded anew."""
    by_tenant: defaultdict[TenantId, list[Place]] = defaultdict(list)
    for work in works:
        by_tenant[work.place.tenant_id].append(work.place)
    wanted = [_curation_of(tenant_id, places) for tenant_id, places in by_tenant.items()]
    ops: defaultdict[tuple[TenantId, str, str], list[CurationOp]] = defaultdict(list)
    for tenant_id, found in zip(by_tenant, await find_all(gate, wanted), strict=True):
        for hit in found:
            row = msgspec.convert(hit.source, CurationRow)
            ops[tenant_id, row.namespace, row.label].append(_op(row))
    for work in works:
        place = work.place
        work.decide(ops[place.tenant_id, place.namespace.owner, place.label])
        for op in work.commands:
            work.curated |= keys_concerned(op, work.ops)
        work.asked |= work.curated


def _curation_of(tenant_id: TenantId, places: Sequence[Place]) -> Wanted:
    terms: list[Query] = [
        {"terms": {"namespace": sorted({place.namespace.owner for place in places})}},
        {"terms": {"label": sorted({place.label for place in places})}},
    ]
    principal = Principal.pipeline(tenant_id)
    return Wanted(principal=principal, index=Index.CURATION, query={"bool": {"filter": terms}})


def _op(row: CurationRow) -> CurationOp:
    return CurationOp(
        event_id=row.event_id,
        version=row.version,
        kind=row.kind,  # type: ignore[arg-type]  # rows are written from the closed set
        keys=tuple(row.keys),
        name=row.name,
        undoes=row.undoes,
    )


async def _count(gate: Gate, asked: Iterable[tuple[LabelWork, set[str]]], excluded: Excluded) -> None:
    ids: defaultdict[TenantId, dict[NameId, tuple[LabelWork, str]]] = defaultdict(dict)
    for work, keys in asked:
        for key in keys:
            ids[work.place.tenant_id][work.name_id(key)] = (work, key)
    for tenant_id, wanted in ids.items():
        if not wanted:
            continue
        principal = Principal.pipeline(tenant_id)
        counts = await count_names(gate, principal, wanted, excluded.get(tenant_id, ()))
        for name_id, count in counts.items():
            work, key = wanted[name_id]
            work.counts[key] = count


async def _due_names(
    gate: Gate, closures: Sequence[Closure], excluded: Excluded
) -> list[dict[NameId, EntityRow]]:
    # The row of a renamed entity's canonical name doesn't tell how the name itself is spelled.
    renamed = [(c.work, _renamed(c)) for c in closures if c.work.curation.renamed]
    await _count(gate, renamed, excluded)
    names = [_counted(closure) for closure in closures]
    documents: list[dict[str, int]] = []
    for closure, found in zip(closures, names, strict=True):
        work = closure.work
        groups: defaultdict[str, list[NameId]] = defaultdict(list)
        for key, name in found.items():
            groups[name.entity_key].append(work.name_id(key))
        several = {entity: ids for entity, ids in groups.items() if len(ids) > 1}
        documents.append(
            await count_documents(gate, work.principal, several, excluded.get(work.place.tenant_id, ()))
        )
    return [
        closure.work.rows.entity_rows(found, totals)
        for closure, found, totals in zip(closures, names, documents, strict=True)
    ]


def _renamed(closure: Closure) -> set[str]:
    stored = closure.work.stored
    return {
        key for key in closure.members - closure.work.asked if key in stored and stored[key].row.canonical
    }


def _counted(closure: Closure) -> dict[str, CountedName]:
    work = closure.work
    counted: dict[str, CountedName] = {}
    for key, root in closure.roots().items():
        if key not in closure.members:
            continue
        count = work.counts.get(key)
        if count is None:
            row = work.stored[key].row
            count = NameCount(mentions=row.mentions, spelling=row.name)
        counted[key] = CountedName(
            key=key,
            mentions=count.mentions,
            spelling=count.spelling or key,
            likeness_key=root,
            entity_key=closure.entity_of(root),
        )
    return counted


async def _write(gate: Gate, writes: Sequence[RowWrite]) -> None:
    results = await gate.write(writes) if writes else []
    for result in results:
        if result.status == "rejected":
            raise PoisonRecord("rejected_by_store", result.reason or "no reason given")
    lost = sum(result.status != "applied" for result in results)
    if lost:
        msg = f"{lost} names or proposals were changed by another writer"
        raise Transient(msg)
