"""Links between invented notes and names that they mention, as rows: what a graph's hops have to walk over.

About five links and five mentions a note (`bench.notes`), hubs among both. The rows are of the agents' kinds; their
texts are not read out of the notes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.notes import linked, path, said_names
from indexers.domain.entities.names import shape_of
from indexers.domain.identity import EntityNamespace, Namespace, Principal, link_id, mention_id
from indexers.domain.names import name_key
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import EntityRow, Index, LinkRow, MentionRow, OwnedRow, owner_fields

LABEL = "subject"
NOTES_AT_ONCE = 400
VERSION = 1


async def weave(gate: Gate, numbers: Sequence[int], count: int, namespace: Namespace) -> None:
    """Links and mentions of these notes among `count`. The caller writes the names and refreshes."""
    for start in range(0, len(numbers), NOTES_AT_ONCE):
        part = numbers[start : start + NOTES_AT_ONCE]
        writes = [w for number in part for w in _rows_of(number, count, namespace)]
        await store(gate, writes)


async def write_names(gate: Gate, count: int, namespace: Namespace, *, version: int) -> int:
    """A row for each name that `count` notes mention, with how many do; the number of names."""
    said = Counter(name for number in range(count) for name in said_names(number, count))
    owner = EntityNamespace.of(namespace)
    names = sorted(said)
    for start in range(0, len(names), NOTES_AT_ONCE):
        part = names[start : start + NOTES_AT_ONCE]
        await store(gate, [_name_write(name, said[name], owner, version) for name in part])
    return len(names)


async def store(gate: Gate, writes: Sequence[RowWrite]) -> None:
    if any(result.status != "applied" for result in await gate.write(writes)):
        raise RuntimeError("a row was not stored")


def _rows_of(number: int, count: int, namespace: Namespace) -> Iterator[RowWrite]:
    doc_id = namespace.document(path(number)).doc_id
    for other in linked(number, count):
        target = name_key(path(other))
        edge_id = link_id(doc_id, VERSION, target, "wikilink")
        yield _write(Index.LINKS, edge_id, _link(number, other, namespace), namespace)
    rnd = random.Random(f"weights {number}")  # noqa: S311 - reproducible rows, no secret
    owner = EntityNamespace.of(namespace)
    for name in said_names(number, count):
        row = _mention(number, name, namespace, round(rnd.uniform(0.5, 1.0), 3))
        yield _write(Index.MENTIONS, mention_id(doc_id, owner.name_id(LABEL, name)), row, namespace)


def _link(number: int, other: int, namespace: Namespace) -> LinkRow:
    target = name_key(path(other))
    place = {"start": 0, "end": 4, "context": f"See [[{target}]].", "display": None, "heading": None}
    return LinkRow(
        **owner_fields(namespace),
        from_doc_id=namespace.document(path(number)).doc_id,
        from_path=path(number),
        to_doc_id=namespace.document(path(other)).doc_id,
        target=target,
        target_key=target,
        target_name_key=target,
        link_type="wikilink",
        occurrences=[place],
        resolved=True,
        ambiguous=False,
        version=VERSION,
    )


def _mention(number: int, name: str, namespace: Namespace, weight: float) -> MentionRow:
    owner = EntityNamespace.of(namespace)
    sentence = f"What is known of {name} stands here."
    place = {"start": 17, "end": 17 + len(name), "surface": name, "weight": weight, "sentence": sentence}
    return MentionRow(
        **owner_fields(namespace),
        doc_id=namespace.document(path(number)).doc_id,
        path=path(number),
        name_id=owner.name_id(LABEL, name),
        namespace=owner.owner,
        label=LABEL,
        key=name,
        surface=name,
        weight=weight,
        start=17,
        end=17 + len(name),
        sentence=sentence,
        occurrences=[place],
        count=1,
        source="model",
        version=VERSION,
    )


def _name_write(name: str, documents: int, owner: EntityNamespace, version: int) -> RowWrite:
    name_id, shape = owner.name_id(LABEL, name), shape_of(name, LABEL)
    row = EntityRow(
        **owner_fields(owner.namespace),
        name_id=name_id,
        likeness_id=name_id,
        entity_id=name_id,
        namespace=owner.owner,
        label=LABEL,
        key=name,
        name=name,
        canonical=True,
        mentions=documents,
        mention_count=documents,
        blocked=False,
        grams=list(shape.grams),
        block=shape.block,
        length=shape.length,
    )
    return _write(Index.ENTITIES, name_id, row, owner.namespace, version)


def _write(
    index: Index, row_id: str, row: OwnedRow, namespace: Namespace, version: int = VERSION
) -> RowWrite:
    # A fresh index: the tenant's own maintenance writes, so nothing is compared with what is there.
    principal = Principal.pipeline(namespace.tenant_id)
    return RowWrite(principal=principal, index=index, row_id=row_id, action="index", row=row, version=version)
