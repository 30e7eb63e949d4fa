"""Names that may be like others, looked up by their pairs of letters: never a scan of all names of a label."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from indexers.domain.entities.clusters import Doubt, Placement
from indexers.domain.entities.names import Verdict, compare, minimum_shared, order, shape_of
from indexers.domain.entities.reclustering import Changes, Reclustering, StoredName
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.find import PAGE_ROWS, Wanted, find_all
from indexers.opensearch.gate import Gate, GatedSearch, RowRef, SearchHit
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query

FIELDS = ("name_id", "key", "likeness_id", "entity_id")
#: Look-ups of one request, and requests under way at once: one answer is read while the engine is at the next.
LOOKUPS_MAX = 64
REQUESTS_MAX = 3


class _ColumnHit(SearchHit, frozen=True, kw_only=True, gc=False):
    stored_id: str = msgspec.field(name="_id", default="")
    fields: dict[str, list[str]] = msgspec.field(default_factory=dict)

    @property
    def row(self) -> dict[str, Any]:
        return {name: values[0] for name, values in self.fields.items()}


async def recluster(gate: Gate, namespace: EntityNamespace, label: str, work: Reclustering) -> Changes:
    """Drive `work` to its end: one request a round, mostly one round. Its caller is the label's only writer.

    What the writer (or one before it) wrote is made findable first.
    """
    fresh = False
    while wanted := work.wanted():
        if not fresh:
            await gate.refresh(Index.ENTITIES, Index.PROPOSALS)
            fresh = True
        work.supply(await similar_names(gate, namespace, label, wanted))
    return work.changes()


async def similar_names(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Iterable[str]
) -> dict[str, list[StoredName]]:
    """By key: the stored names that `names.compare` may call alike, and some more; itself where it is stored.

    Complete for joins and proposals (see `names.minimum_shared`), as of the last refresh of entities and proposals.
    Those that a key may be proposed to later come with their proposals.
    """
    asked = sorted(keys)
    found: dict[str, list[dict[str, Any]]] = {}
    free = asyncio.Semaphore(REQUESTS_MAX)

    async def look_up(some: Sequence[str]) -> list[list[dict[str, Any]]]:
        async with free:
            return await _rows_of_each(
                gate, namespace, [similar_query(namespace, label, key) for key in some]
            )

    parts = _chunks(asked)
    for some, rows in zip(parts, await asyncio.gather(*map(look_up, parts)), strict=True):
        found |= dict(zip(some, rows, strict=True))
    every = [row for rows in found.values() for row in rows]
    names = await _stored_names(gate, namespace, label, every, asked)
    near = {key: [names[row["key"]] for row in rows] for key, rows in found.items()}
    proposals = await _proposals(gate, namespace, label, _open_to(near, label))
    return {
        key: [replace(name, proposals=proposals.get(name.key)) for name in some] for key, some in near.items()
    }


async def read_names(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Iterable[str]
) -> dict[str, StoredName]:
    """The names as last written, refreshed or not; those that aren't stored are left out."""
    asked = sorted(set(keys))
    refs = _refs(namespace, [namespace.name_id(label, key) for key in asked])
    rows = await gate.get_many(Index.ENTITIES, refs, fields=FIELDS) if refs else []
    return await _stored_names(gate, namespace, label, [row.source for row in rows if row is not None], asked)


def similar_query(namespace: EntityNamespace, label: str, key: str) -> Query:
    """A name without a block is like itself alone."""
    shape = shape_of(key, label)
    owner = [{"term": {"namespace": namespace.owner}}, {"term": {"label": label}}]
    if shape.block is None:
        return {"bool": {"filter": [*owner, {"term": {"key": key}}]}}
    joined, *pairs = [{"term": {"grams": gram}} for gram in shape.grams]
    enough = {"bool": {"should": pairs, "minimum_should_match": minimum_shared(shape)}}
    alike = {"bool": {"should": [enough, joined], "minimum_should_match": 1}}
    return {"bool": {"filter": [*owner, alike]}}


async def _rows_of_each(
    gate: Gate, namespace: EntityNamespace, queries: Sequence[Query]
) -> list[list[dict[str, Any]]]:
    """Read from the columns: of a look-up it is the hits that cost, and a row as stored costs three times as much."""
    principal = Principal.pipeline(namespace.tenant_id)
    columns = {"_source": False, "stored_fields": "_none_", "docvalue_fields": list(FIELDS)}
    pages = await gate.search_many(
        [
            GatedSearch(
                principal=principal,
                index=Index.ENTITIES,
                body={"query": query, "size": PAGE_ROWS, **columns},
                hit=_ColumnHit,
            )
            for query in queries
        ]
    )
    rows = [[hit.row for hit in page.hits if isinstance(hit, _ColumnHit)] for page in pages]
    for at, page in enumerate(pages):
        if page.total > len(page.hits):
            [found] = await find_all(gate, [_wanted(namespace, queries[at])])
            rows[at] = [hit.source for hit in found]
    return rows


async def _stored_names(
    gate: Gate,
    namespace: EntityNamespace,
    label: str,
    rows: Sequence[dict[str, Any]],
    known: Collection[str],
) -> dict[str, StoredName]:
    """Rows point by id, and ids don't tell the key: those of names beyond the answer are read.

    The key is '' where no such name is stored: its writer was cut off before it wrote that one.
    """
    keys = {namespace.name_id(label, key): key for key in known} | {
        row["name_id"]: row["key"] for row in rows
    }
    pointed = {row[field] for row in rows for field in ("likeness_id", "entity_id")}
    missing = sorted(pointed - keys.keys())
    if missing:
        beyond = await gate.get_many(Index.ENTITIES, _refs(namespace, missing), fields=("key",))
        keys |= {
            row_id: "" if row is None else row.source["key"]
            for row_id, row in zip(missing, beyond, strict=True)
        }
    return {
        row["key"]: StoredName(
            key=row["key"],
            placement=Placement(likeness_key=keys[row["likeness_id"]], entity_key=keys[row["entity_id"]]),
        )
        for row in rows
    }


def _open_to(near: dict[str, list[StoredName]], label: str) -> list[str]:
    """Later canonical names that a looked-up key may be offered to."""
    return sorted(
        {
            name.key
            for key, names in near.items()
            for name in names
            if name.canonical
            and order(name.key) > order(key)
            and compare(key, name.key, label).verdict is Verdict.PROPOSE
        }
    )


async def _proposals(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Sequence[str]
) -> dict[str, tuple[Doubt, ...]]:
    """Of every key, what is stored with it as the later name. Rows round the likeness, so it is computed anew."""
    owner = [{"term": {"namespace": namespace.owner}}, {"term": {"label": label}}]
    wanted = [
        Wanted(
            principal=Principal.pipeline(namespace.tenant_id),
            index=Index.PROPOSALS,
            query={"bool": {"filter": [*owner, {"terms": {"other_key": list(some)}}]}},
            fields=("key", "other_key"),
        )
        for some in _chunks(keys)
    ]
    doubts: dict[str, list[Doubt]] = {key: [] for key in keys}
    for rows in await find_all(gate, wanted) if wanted else []:
        for row in rows:
            key, other = row.source["key"], row.source["other_key"]
            found = compare(key, other, label)
            doubts[other].append(Doubt(earlier=key, similarity=found.similarity, reason=found.reason))
    return {key: tuple(some) for key, some in doubts.items()}


def _wanted(namespace: EntityNamespace, query: Query) -> Wanted:
    return Wanted(
        principal=Principal.pipeline(namespace.tenant_id), index=Index.ENTITIES, query=query, fields=FIELDS
    )


def _refs(namespace: EntityNamespace, name_ids: Iterable[str]) -> list[RowRef]:
    principal = Principal.pipeline(namespace.tenant_id)
    return [RowRef(principal=principal, row_id=name_id) for name_id in name_ids]


def _chunks(keys: Sequence[str]) -> list[Sequence[str]]:
    return [keys[at : at + LOOKUPS_MAX] for at in range(0, len(keys), LOOKUPS_MAX)]
