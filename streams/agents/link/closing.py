"""All names of every entity that a batch touches: of those that it was, and of those that it is now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indexers.domain.identity import NameId
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query
from streams.agents.link.work import LabelWork, stored_name

#: Values of one terms query, below the engine's limit of 65,536.
TERMS_MAX = 20_000


async def close_entities(gate: Gate, works: Sequence[LabelWork]) -> list[set[str]]:
    """Of each work: names, present and gone, of the entities that may change; each entity is complete.

    Every name whose entity changes is among `changes.placements`, so the others of an entity are those that are
    stored with its id.
    """
    await read_names(gate, [(work, {work.name_id(key) for key in work.changes.placements}) for work in works])
    touched = [work.asked | set(work.changes.placements) for work in works]
    parts = [
        (at, wanted)
        for at, (work, keys) in enumerate(zip(works, touched, strict=True))
        for wanted in _names_of(work, _entities(work, keys))
    ]
    for (at, _), rows in zip(parts, await find_all(gate, [wanted for _, wanted in parts]), strict=True):
        found = [stored_name(row) for row in rows]
        works[at].learn(found)
        touched[at] |= {one.row.key for one in found}
    return touched


async def read_names(gate: Gate, asked: Sequence[tuple[LabelWork, set[NameId]]]) -> None:
    """Rows of these ids as last written (realtime), learned by their works."""
    refs = [
        (work, RowRef(principal=work.principal, row_id=row_id))
        for work, ids in asked
        for row_id in sorted(ids)
    ]
    rows = await gate.get_many(Index.ENTITIES, [ref for _, ref in refs]) if refs else []
    for (work, _), row in zip(refs, rows, strict=True):
        if row is not None:
            work.learn([stored_name(row)])


def in_label(work: LabelWork, query: Query) -> Query:
    place = work.place
    terms: list[Query] = [
        {"term": {"namespace": place.namespace.owner}},
        {"term": {"label": place.label}},
        query,
    ]
    return {"bool": {"filter": terms}}


def _entities(work: LabelWork, keys: set[str]) -> set[str]:
    """Ids of the entities to which these names belonged and belong."""
    before = {work.stored[key].row.entity_id for key in keys if key in work.stored}
    return before | {work.placed(key)[1] for key in keys if work.exists(key)}


def _names_of(work: LabelWork, entities: set[str]) -> Iterator[Wanted]:
    ids = sorted(entities)
    for start in range(0, len(ids), TERMS_MAX):
        query = in_label(work, {"terms": {"entity_id": ids[start : start + TERMS_MAX]}})
        yield Wanted(principal=work.principal, index=Index.ENTITIES, query=query)
