"""Names, entities and proposals as they follow from the edges and from what curators decided.

All of it is a function of the sets (names with edges, commands), so repeating it changes nothing, and a part that a
crash left undone is done by the repeated batch. To that end the rows of names that come or go are written last: while
one is not as it shall be, its whole neighbourhood is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from indexers.domain.entities.curation import CurationOp, keys_concerned
from indexers.domain.identity import NameId, Principal, TenantId
from indexers.errors import PoisonRecord, Transient
from indexers.linking.counts import NameCount, count_documents, count_names
from indexers.linking.entity_rows import CountedName
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import CurationRow, EntityRow, Index, OwnedRow, ProposalRow
from indexers.opensearch.visibility import Query
from streams.agents.link.closing import Closure, close_entities, read_names
from streams.agents.link.decode import Command, Place
from streams.agents.link.edges import Edges
from streams.agents.link.likeness import relike
from streams.agents.link.proposing import ProposalWork, due_proposals, shifted_roots
from streams.agents.link.work import LabelWork, Stored

Excluded = Mapping[TenantId, Sequence[Query]]


@dataclass(slots=True, kw_only=True)
class Settled:
    """Names that came, joined another by likeness as they came, or went; proposals made."""

    created: int = 0
    joined: int = 0
    removed: int = 0
    proposed: int = 0


async def settle_names(gate: Gate, edges: Edges, commands: Sequence[Command]) -> Settled:
    """Raises Transient where another writer was at the same names: then all of it is looked at again.

    The caller has refreshed all indices of entities after its last write to them.
    """
    works = _works(edges, commands)
    if not works:
        return Settled()
    await _read_curation(gate, works, commands)
    await _count(gate, [(work, work.asked) for work in works], edges.excluded)
    await read_names(
        gate, [(work, {work.name_id(k) for k in work.asked | work.merged_keys}) for work in works]
    )
    await relike(gate, [(work, work.come_or_gone | work.curated) for work in works])
    closures = await close_entities(gate, works)
    await relike(gate, [(closure.work, shifted_roots(closure)) for closure in closures])
    proposing = await due_proposals(gate, closures)
    rows = await _due_names(gate, closures, edges.excluded)
    settled = Settled()
    early, late = _changes(closures, rows, proposing, settled)
    await _write(gate, early)
    await _write(gate, late)
    if early or late:
        await gate.refresh(Index.ENTITIES, Index.PROPOSALS)
    return settled


def _works(edges: Edges, commands: Sequence[Command]) -> list[LabelWork]:
    asked: defaultdict[Place, set[str]] = defaultdict(set)
    for place, keys in edges.affected.items():
        asked[place] |= keys
    for command in commands:
        asked[command.place] |= set()
    return [LabelWork(place=place, asked=keys, curated=set()) for place, keys in asked.items()]


async def _read_curation(gate: Gate, works: Sequence[LabelWork], commands: Sequence[Command]) -> None:
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
        for command in commands:
            if command.place == place:
                work.curated |= keys_concerned(command.op, work.ops)
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


def _changes(
    closures: Sequence[Closure],
    rows: Sequence[Mapping[NameId, EntityRow]],
    proposing: Sequence[ProposalWork],
    settled: Settled,
) -> tuple[list[RowWrite], list[RowWrite]]:
    """What differs from the store: proposals and rows of names that stay, then those that come and go."""
    early: list[RowWrite] = []
    late: list[RowWrite] = []
    for closure, due in zip(closures, rows, strict=True):
        work = closure.work
        come_or_gone = work.come_or_gone
        for key in sorted(closure.members):
            name_id = work.name_id(key)
            row, stored = due.get(name_id), work.stored.get(key)
            change = _change(work.principal, Index.ENTITIES, name_id, row, stored)
            if change is not None:
                (late if key in come_or_gone else early).append(change)
                settled.created += stored is None
                settled.removed += row is None
                settled.joined += stored is None and row is not None and row.likeness_id != name_id
    for one in proposing:
        principal = one.closure.work.principal
        for row_id in sorted({*one.due, *one.stored}):
            found = one.stored.get(row_id)
            change = _change(principal, Index.PROPOSALS, row_id, one.due.get(row_id), found)
            if change is not None:
                early.append(change)
                settled.proposed += found is None
    return early, late


def _change(
    principal: Principal,
    index: Index,
    row_id: str,
    due: OwnedRow | None,
    stored: Stored[EntityRow] | Stored[ProposalRow] | None,
) -> RowWrite | None:
    """None: the store says so already, or has nothing where nothing is due."""
    if due is None and stored is None:
        return None
    if stored is None:
        return RowWrite(principal=principal, index=index, row_id=row_id, action="create", row=due)
    if due == stored.row:
        return None
    return RowWrite(
        principal=principal,
        index=index,
        row_id=row_id,
        action="delete_if" if due is None else "replace_if",
        row=due,
        seq_no=stored.seq_no,
        primary_term=stored.primary_term,
    )


async def _write(gate: Gate, writes: Sequence[RowWrite]) -> None:
    results = await gate.write(writes) if writes else []
    for result in results:
        if result.status == "rejected":
            raise PoisonRecord("rejected_by_store", result.reason or "no reason given")
    lost = sum(result.status != "applied" for result in results)
    if lost:
        msg = f"{lost} names or proposals were changed by another writer"
        raise Transient(msg)
