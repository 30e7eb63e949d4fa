"""Names and entities as the store has them, for one principal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from indexers.domain.identity import Principal
from indexers.opensearch.gate import Gate, GatedSearch, RowRef
from indexers.opensearch.rows import EntityRow, Index
from search_api.entities.models import EntityLine
from search_api.problems import no_such
from search_api.stored import is_id

#: All but what similar names are found by.
ENTITY_FIELDS: Final = tuple(name for name in EntityRow.__struct_fields__ if name != "grams")
#: Names of one entity that a query names, of one page of the engine; more of them are the rarest spellings.
NAMES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityName:
    """One of an entity's names; `key`: normalised."""

    name_id: str
    key: str


def line_of(row: EntityRow, *, matched: str | None = None) -> EntityLine:
    """Of a canonical row."""
    return EntityLine(
        entity_id=row.entity_id,
        name=row.name,
        label=row.label,
        namespace=row.namespace,
        mention_count=row.mention_count,
        blocked=row.blocked,
        matched=None if matched == row.name else matched,
    )


async def name_rows(gate: Gate, principal: Principal, name_ids: Iterable[str]) -> dict[str, EntityRow]:
    """As last written (realtime); what isn't there or may not be seen is left out."""
    wanted = list(dict.fromkeys(name_ids))
    refs = [RowRef(principal=principal, row_id=name_id) for name_id in wanted]
    found = await gate.get_many(Index.ENTITIES, refs, fields=ENTITY_FIELDS) if refs else []
    return {row.row_id: entity_row(row.source) for row in found if row is not None}


async def entity_of(gate: Gate, principal: Principal, entity_id: str) -> EntityRow:
    """The canonical row of the entity that has a name of this id. Raises 404."""
    if is_id(entity_id):
        found = await canonical_rows(gate, principal, [entity_id])
        if entity_id in found:
            return found[entity_id]
    raise no_such("entity")


async def shown_names(gate: Gate, principal: Principal, entity_id: str, size: int) -> list[EntityRow]:
    """Names of an entity, those with most mentions first."""
    body = _names_body(entity_id, size)
    [page] = await gate.search_many([GatedSearch(principal=principal, index=Index.ENTITIES, body=body)])
    return [entity_row(hit.source) for hit in page.hits]


async def all_names(gate: Gate, principal: Principal, row: EntityRow) -> list[EntityName]:
    """Of the entity with this canonical row: itself, and its aliases as far as a search shows them."""
    body = _names_body(row.entity_id, NAMES_MAX) | {"_source": ["name_id", "key"]}
    [page] = await gate.search_many([GatedSearch(principal=principal, index=Index.ENTITIES, body=body)])
    found = {row.name_id: EntityName(name_id=row.name_id, key=row.key)}
    for hit in page.hits:
        found[hit.source["name_id"]] = EntityName(name_id=hit.source["name_id"], key=hit.source["key"])
    return list(found.values())


async def canonical_rows(gate: Gate, principal: Principal, name_ids: Iterable[str]) -> dict[str, EntityRow]:
    """Name id → canonical row of its entity, in two round trips."""
    names = await name_rows(gate, principal, name_ids)
    missing = {row.entity_id for row in names.values()} - set(names)
    known = names | await name_rows(gate, principal, sorted(missing))
    return {name_id: known[row.entity_id] for name_id, row in names.items() if row.entity_id in known}


def entity_row(source: Mapping[str, Any]) -> EntityRow:
    return msgspec.convert({"grams": [], **source}, EntityRow)


def _names_body(entity_id: str, size: int) -> dict[str, Any]:
    return {
        "query": {"term": {"entity_id": entity_id}},
        "size": size,
        "sort": [{"mentions": "desc"}, {"name_id": "asc"}],
        "track_total_hits": False,
    }
