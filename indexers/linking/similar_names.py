"""Names that may be like others, looked up by their pairs of letters: never a scan of all names of a label."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from indexers.domain.entities.clusters import Placement
from indexers.domain.entities.names import minimum_shared, shape_of
from indexers.domain.entities.reclustering import Changes, Reclustering, StoredName
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query

FIELDS = ("name_id", "key", "likeness_id", "entity_id")
#: Look-ups of one request.
LOOKUPS_MAX = 256


async def recluster(gate: Gate, namespace: EntityNamespace, label: str, work: Reclustering) -> Changes:
    """Drive `work` to its end: one request a round, mostly one round. Its caller is the label's only writer.

    What the writer (or one before it) wrote is made findable first.
    """
    fresh = False
    while wanted := work.wanted():
        if not fresh:
            await gate.refresh(Index.ENTITIES)
            fresh = True
        work.supply(await similar_names(gate, namespace, label, wanted))
    return work.changes()


async def similar_names(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Iterable[str]
) -> dict[str, list[StoredName]]:
    """By key: the stored names that `names.compare` may call alike, and some more; itself where it is stored.

    Complete for joins and proposals (see `names.minimum_shared`), as of the last refresh of the entities.
    """
    asked = sorted(keys)
    found: dict[str, list[dict[str, Any]]] = {}
    for some in _chunks(asked):
        wanted = [_wanted(namespace, similar_query(namespace, label, key)) for key in some]
        rows = await find_all(gate, wanted)
        found |= {key: [hit.source for hit in hits] for key, hits in zip(some, rows, strict=True)}
    names = await _stored_names(
        gate, namespace, label, [row for rows in found.values() for row in rows], asked
    )
    return {key: [names[row["key"]] for row in rows] for key, rows in found.items()}


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


def _wanted(namespace: EntityNamespace, query: Query) -> Wanted:
    return Wanted(
        principal=Principal.pipeline(namespace.tenant_id), index=Index.ENTITIES, query=query, fields=FIELDS
    )


def _refs(namespace: EntityNamespace, name_ids: Iterable[str]) -> list[RowRef]:
    principal = Principal.pipeline(namespace.tenant_id)
    return [RowRef(principal=principal, row_id=name_id) for name_id in name_ids]


def _chunks(keys: Sequence[str]) -> Iterable[Sequence[str]]:
    return [keys[at : at + LOOKUPS_MAX] for at in range(0, len(keys), LOOKUPS_MAX)]
