"""Names, entities and proposals as they follow from the edges and from what curators decided.

All of it is a function of the sets (names with edges, commands), so repeating it changes nothing, and a part that a
crash left undone is done by the repeated batch. To that end the rows of names that come or go are written last: while
one is not as it shall be, its whole neighbourhood is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from indexers.domain.entities.curation import keys_concerned
from indexers.domain.identity import NameId, Principal, TenantId
from indexers.errors import PoisonRecord, Transient
from indexers.linking.counts import NameCount, count_documents, count_names
from indexers.linking.curations import read_curations
from indexers.linking.entity_rows import CountedName
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import EntityRow, Index
from indexers.opensearch.visibility import Query
from streams.agents.link.changes import Settled, changes_of
from streams.agents.link.closing import close_entities, read_names
from streams.agents.link.decode import Command, Place
from streams.agents.link.edges import Edges
from streams.agents.link.likeness import recluster
from streams.agents.link.proposing import judge_proposals
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
    await read_names(gate, [(work, {work.name_id(key) for key in work.asked}) for work in works])
    await _count(gate, [(work, work.asked) for work in works], excluded)
    await recluster(gate, works)
    members = list(zip(works, await close_entities(gate, works), strict=True))
    rows = await _due_names(gate, members, excluded)
    changes = changes_of(members, rows, await judge_proposals(gate, works))
    await _write(gate, changes.early)
    await _write(gate, changes.late)
    if changes.early or changes.late:
        await gate.refresh(Index.ENTITIES, Index.PROPOSALS)
    settled.add(changes)
    return [again for work in works if work.place in changes.places and (again := work.again())]


def _works(edges: Edges, commands: Sequence[Command]) -> list[LabelWork]:
    asked: defaultdict[Place, set[str]] = defaultdict(set)
    for place, keys in edges.affected.items():
        asked[place] |= keys
    for command in commands:
        asked[command.place] |= set()
    works = {place: LabelWork(place=place, asked=keys) for place, keys in asked.items()}
    for command in commands:
        works[command.place].commands.append(command.op)
    return list(works.values())


async def _read_curation(gate: Gate, works: Sequence[LabelWork]) -> None:
    """All commands of a label, folded anew."""
    found = await read_curations(gate, [(work.place.namespace, work.place.label) for work in works])
    for work in works:
        work.decide(found[work.place.namespace, work.place.label])
        for op in work.commands:
            work.curated |= keys_concerned(op, work.ops)
        work.asked |= work.curated


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
    gate: Gate, members: Sequence[tuple[LabelWork, set[str]]], excluded: Excluded
) -> list[dict[NameId, EntityRow]]:
    # The row of a renamed entity's canonical name doesn't tell how the name itself is spelled.
    renamed = [(work, _shown_otherwise(work, keys)) for work, keys in members if work.curation.renamed]
    await _count(gate, renamed, excluded)
    due = [_DueNames(work, keys) for work, keys in members]
    documents = await _count_documents(gate, due, excluded)
    return [one.rows(documents) for one in due]


async def _count_documents(gate: Gate, due: Sequence[_DueNames], excluded: Excluded) -> dict[str, int]:
    """Of entities with several names; their ids tell places apart, so one look serves all places of a tenant."""
    several: defaultdict[TenantId, dict[str, list[NameId]]] = defaultdict(dict)
    for one in due:
        several[one.work.place.tenant_id] |= one.several
    counts: dict[str, int] = {}
    for tenant_id, groups in several.items():
        principal = Principal.pipeline(tenant_id)
        counts |= await count_documents(gate, principal, groups, excluded.get(tenant_id, ()))
    return counts


class _DueNames:
    """Names of one place that exist, by entity."""

    def __init__(self, work: LabelWork, keys: set[str]) -> None:
        self.work = work
        self._names = {key: _counted(work, key) for key in sorted(keys) if work.exists(key)}
        self._entities: defaultdict[str, list[str]] = defaultdict(list)
        for key, name in self._names.items():
            self._entities[name.entity_id].append(key)

    @property
    def several(self) -> dict[str, list[NameId]]:
        """Entities with more than one name."""
        return {
            entity: [self.work.name_id(key) for key in keys]
            for entity, keys in self._entities.items()
            if len(keys) > 1
        }

    def rows(self, documents: Mapping[str, int]) -> dict[NameId, EntityRow]:
        rows, entities = self.work.rows, self._entities
        return {
            self.work.name_id(key): rows.entity_row(
                name, entities[name.entity_id], documents.get(name.entity_id)
            )
            for key, name in self._names.items()
        }


def _shown_otherwise(work: LabelWork, keys: set[str]) -> set[str]:
    stored = work.stored
    return {key for key in keys - work.asked if key in stored and stored[key].row.canonical}


def _counted(work: LabelWork, key: str) -> CountedName:
    count = work.counts.get(key)
    if count is None:
        row = work.stored[key].row
        count = NameCount(mentions=row.mentions, spelling=row.name)
    likeness_id, entity_id = work.placed(key)
    return CountedName(
        key=key,
        mentions=count.mentions,
        spelling=count.spelling or key,
        likeness_id=likeness_id,
        entity_id=entity_id,
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
