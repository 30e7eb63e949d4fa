"""Names that may be like others, looked up by their pairs of letters: never a scan of all names of a label."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from indexers.domain.entities.clusters import Doubt, Placement
from indexers.domain.entities.names import Verdict, compare, order
from indexers.domain.entities.reclustering import Changes, Reclustering, StoredName
from indexers.domain.identity import EntityNamespace, Principal
from indexers.linking.name_search import FIELDS, NameRow, chunks, in_label, name_row, rows_alike
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index

#: Names of one search for proposals.
_NAMES_MAX: Final = 500


async def recluster(gate: Gate, namespace: EntityNamespace, label: str, work: Reclustering) -> Changes:
    """Drive `work` to its end, mostly in one round. Its caller is the label's only writer.

    The caller has refreshed names and proposals after what the writer (or one before it) wrote.
    """
    while wanted := work.wanted():
        work.supply(await similar_names(gate, namespace, label, wanted))
    return work.changes()


async def similar_names(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Iterable[str]
) -> dict[str, list[StoredName]]:
    """By key: the stored names that `names.compare` doesn't call different; itself where it is stored.

    As of the last refresh of entities and proposals. Those that a key may be proposed to later come with their
    proposals.
    """
    asked = sorted(keys)
    found = await rows_alike(gate, namespace, label, asked)
    every = {row for rows in found.values() for row in rows}
    names = await _stored_names(gate, namespace, label, every, asked)
    near = {key: [names[row.key] for row in found[key]] for key in asked}
    proposals = await _proposals(gate, namespace, label, _open_to(near, label))
    if proposals:
        names = {key: replace(name, proposals=proposals.get(key)) for key, name in names.items()}
    return {key: [names[name.key] for name in some] for key, some in near.items()}


async def read_names(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Iterable[str]
) -> dict[str, StoredName]:
    """The names as last written, refreshed or not; those that aren't stored are left out."""
    asked = sorted(set(keys))
    refs = _refs(namespace, [namespace.name_id(label, key) for key in asked])
    rows = await gate.get_many(Index.ENTITIES, refs, fields=FIELDS) if refs else []
    found = {name_row(row.source) for row in rows if row is not None}
    return await _stored_names(gate, namespace, label, found, asked)


async def _stored_names(
    gate: Gate,
    namespace: EntityNamespace,
    label: str,
    rows: Collection[NameRow],
    asked: Collection[str],
) -> dict[str, StoredName]:
    """Rows point by id, and ids don't tell the key: those of names beyond the answer are read.

    The key is '' where no such name is stored: its writer was cut off before it wrote that one.
    """
    pointed = {one for row in rows for one in (row.likeness_id, row.entity_id)}
    keys: dict[str, str] = {namespace.name_id(label, row.key): row.key for row in rows}
    if pointed - keys.keys():
        keys |= {namespace.name_id(label, key): key for key in asked}
    missing = sorted(pointed - keys.keys())
    if missing:
        beyond = await gate.get_many(Index.ENTITIES, _refs(namespace, missing), fields=("key",))
        keys |= {
            row_id: "" if row is None else row.source["key"]
            for row_id, row in zip(missing, beyond, strict=True)
        }
    return {
        row.key: StoredName(
            key=row.key,
            placement=Placement(likeness_key=keys[row.likeness_id], entity_key=keys[row.entity_id]),
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
    owner = in_label(namespace, label)
    wanted = [
        Wanted(
            principal=Principal.pipeline(namespace.tenant_id),
            index=Index.PROPOSALS,
            query={"bool": {"filter": [*owner, {"terms": {"other_key": list(some)}}]}},
            fields=("key", "other_key"),
        )
        for some in chunks(keys, _NAMES_MAX)
    ]
    doubts: dict[str, list[Doubt]] = {key: [] for key in keys}
    for rows in await find_all(gate, wanted) if wanted else []:
        for row in rows:
            key, other = row.source["key"], row.source["other_key"]
            found = compare(key, other, label)
            doubts[other].append(Doubt(earlier=key, similarity=found.similarity, reason=found.reason))
    return {key: tuple(some) for key, some in doubts.items()}


def _refs(namespace: EntityNamespace, name_ids: Iterable[str]) -> list[RowRef]:
    principal = Principal.pipeline(namespace.tenant_id)
    return [RowRef(principal=principal, row_id=name_id) for name_id in name_ids]
