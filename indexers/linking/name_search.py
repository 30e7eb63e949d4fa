"""Rows of names that are like others, found by their pairs of letters: many names in one search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from indexers.domain.entities.likeness import alike
from indexers.domain.entities.names import block_of, like_lengths, minimum_shared, shape_of
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, GatedSearch, SearchHit
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query
from indexers.together import together

T = TypeVar("T")
#: Columns of a row that a look-up reads.
FIELDS: Final = ("key", "likeness_id", "entity_id")
#: Names of one search share its cost, which is a third of a look-up's. The engine takes 1,024 clauses, and a name has
#: up to 202; where there are two cores, a few searches of this size keep both at work.
CLAUSES_MAX: Final = 250
#: Rows of one search. More are scanned, at the cost of another request.
HITS_MAX: Final = 5_000
#: Searches of one request, and requests under way at once: one answer is read while the engine is at the next.
SEARCHES_MAX: Final = 6
REQUESTS_MAX: Final = 3


class _Columns(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    key: tuple[str]
    likeness_id: tuple[str]
    entity_id: tuple[str]


class _ColumnHit(SearchHit, frozen=True, kw_only=True, gc=False):
    stored_id: str = msgspec.field(name="_id", default="")
    fields: _Columns

    @property
    def row(self) -> NameRow:
        [key], [likeness_id], [entity_id] = self.fields.key, self.fields.likeness_id, self.fields.entity_id
        return NameRow(key, likeness_id, entity_id)


class NameRow(NamedTuple):
    key: str
    likeness_id: str
    entity_id: str


async def rows_alike(
    gate: Gate, namespace: EntityNamespace, label: str, keys: Sequence[str]
) -> dict[str, list[NameRow]]:
    """By key: the rows of names that `names.compare` doesn't call different, its own among them.

    The first failure of a request ends the others, and is raised as it is.
    """
    parts = chunks(_batches(keys, label), SEARCHES_MAX)
    requests = [_rows_of_batches(gate, namespace, label, part) for part in parts]
    answers = await together(*requests, at_once=REQUESTS_MAX)
    return {key: rows for answer in answers for batch in answer for key, rows in batch.items()}


def _query(namespace: EntityNamespace, label: str, keys: Iterable[str]) -> Query:
    """Stored names that may be like any of these, and some more: complete, see `names.minimum_shared`."""
    clauses = [clause for key in keys for clause in _clauses(key, label)]
    alike_any = {"bool": {"should": clauses, "minimum_should_match": 1}}
    return {"bool": {"filter": [*in_label(namespace, label), alike_any]}}


def _clauses(key: str, label: str) -> list[Query]:
    """A name without a block is like itself alone."""
    shape = shape_of(key, label)
    if shape.block is None:
        return [{"term": {"key": key}}]
    joined, *pairs = [{"term": {"grams": gram}} for gram in shape.grams]
    shortest, longest = like_lengths(shape)
    enough = {
        "filter": [{"range": {"length": {"gte": shortest, "lte": longest}}}],
        "should": pairs,
        "minimum_should_match": minimum_shared(shape),
    }
    return [{"bool": enough}, joined]


def _batches(keys: Iterable[str], label: str) -> list[list[str]]:
    """Names of one block together: what two of them are like is then sent once."""
    batches: list[list[str]] = []
    clauses = CLAUSES_MAX
    for key in sorted(keys, key=lambda key: (block_of(key, label) or "", key)):
        more = len(shape_of(key, label).grams) + 1
        if clauses + more > CLAUSES_MAX:
            batches.append([])
            clauses = 0
        clauses += more
        batches[-1].append(key)
    return batches


async def _rows_of_batches(
    gate: Gate, namespace: EntityNamespace, label: str, batches: Sequence[Sequence[str]]
) -> list[dict[str, list[NameRow]]]:
    """Of each batch by key. Read from the columns: a row as stored costs three times as much."""
    columns = {"_source": False, "stored_fields": "_none_", "docvalue_fields": list(FIELDS)}
    queries = [_query(namespace, label, batch) for batch in batches]
    principal = Principal.pipeline(namespace.tenant_id)
    pages = await gate.search_many(
        [
            GatedSearch(
                principal=principal,
                index=Index.ENTITIES,
                body={"query": query, "size": HITS_MAX, **columns},
                hit=_ColumnHit,
            )
            for query in queries
        ]
    )
    answers: list[dict[str, list[NameRow]]] = []
    for batch, query, page in zip(batches, queries, pages, strict=True):
        rows = [hit.row for hit in page.hits if isinstance(hit, _ColumnHit)]
        if page.total > len(rows):
            [every] = await find_all(gate, [_wanted(namespace, query)])
            rows = [name_row(hit.source) for hit in every]
        by_key = {row.key: row for row in rows}
        near = alike(batch, by_key, label)
        answers.append({key: [by_key[other] for other in sorted(near[key])] for key in batch})
    return answers


def in_label(namespace: EntityNamespace, label: str) -> list[Query]:
    return [{"term": {"namespace": namespace.owner}}, {"term": {"label": label}}]


def _wanted(namespace: EntityNamespace, query: Query) -> Wanted:
    return Wanted(
        principal=Principal.pipeline(namespace.tenant_id), index=Index.ENTITIES, query=query, fields=FIELDS
    )


def name_row(source: Mapping[str, Any]) -> NameRow:
    return NameRow(*(source[name] for name in FIELDS))


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[at : at + size] for at in range(0, len(items), size)]
