"""Mention rows of a batch: written first, the outdated ones told but left until the names have been settled.

So a crash in between finds the same affected names again: those of the rows just written and of those still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, MentionId, Principal, TenantId, mention_id
from indexers.errors import PoisonRecord, Transient
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, RowRef, RowWrite, StoredRow
from indexers.opensearch.rows import Index, MentionRow, owner_fields
from indexers.opensearch.visibility import Query
from streams.agents.link.decode import Place, Word
from streams.agents.link.outdated import Group, Verdict, groups_of, outdated_query
from streams.batch import Poisoned
from streams.events import ExtractedMention

#: Occurrences that a row keeps; its `count` says how many there are.
OCCURRENCES_MAX: Final = 20
#: Rows turned into JSON at once.
ROWS_AT_ONCE: Final = 500
_FIELDS = ("doc_id", "namespace", "label", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutdatedEdge:
    """A row that no longer stands; `version`: of what overtook it."""

    row_id: str
    version: int


@dataclass(slots=True, kw_only=True)
class Edges:
    """What a slice of a batch means for the edges. `affected`: keys whose count may change, by place."""

    affected: defaultdict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    outdated: defaultdict[TenantId, list[OutdatedEdge]] = field(default_factory=lambda: defaultdict(list))
    #: Queries that find the outdated rows, for counting without them.
    excluded: defaultdict[TenantId, list[Query]] = field(default_factory=lambda: defaultdict(list))
    rejected: list[Poisoned] = field(default_factory=list)
    written: int = 0
    #: Words that stand as they were told, ends of documents among them.
    current: list[Word] = field(default_factory=list)
    #: Words that a later event of the document has overtaken.
    older: int = 0


async def write_edges(gate: Gate, words: Sequence[Word]) -> Edges:
    """New rows in the store and findable; outdated ones found and left."""
    edges = Edges()
    verdicts = await _verdicts(gate, words)
    edges.current = [v.word for v in verdicts if v.rows is not None or v.word.is_deletion]
    edges.older = len(verdicts) - len(edges.current)
    await _write(gate, verdicts, edges)
    await _require_current(gate, verdicts)
    await gate.refresh(Index.CURATION, Index.ENTITIES, Index.MENTIONS, Index.PROPOSALS)
    await _find_outdated(gate, verdicts, edges)
    return edges


async def remove_outdated(gate: Gate, edges: Edges) -> int:
    removals = [
        RowWrite(
            principal=Principal.pipeline(tenant_id),
            index=Index.MENTIONS,
            row_id=edge.row_id,
            action="delete",
            version=edge.version,
        )
        for tenant_id, found in edges.outdated.items()
        for edge in found
    ]
    if removals:
        await gate.write(removals)
    return len(removals)


def mention_rows(word: Word) -> dict[MentionId, MentionRow]:
    """One row for each name. Surfaces that normalise to nothing name nothing."""
    by_key: defaultdict[str, list[ExtractedMention]] = defaultdict(list)
    for mention in word.event.mentions:
        key = name_key(mention.surface, word.event.label)
        if key:
            by_key[key].append(mention)
    rows: dict[MentionId, MentionRow] = {}
    for key, found in by_key.items():
        row = _row(word, key, sorted(found, key=lambda m: (m.start, m.end, -m.weight, m.sentence)))
        rows[mention_id(word.doc_id, word.place.namespace.name_id(word.event.label, key))] = row
    return rows


def _row(word: Word, key: str, occurrences: Sequence[ExtractedMention]) -> MentionRow:
    event, place = word.event, word.place
    strongest = max(occurrences, key=lambda mention: mention.weight)
    return MentionRow(
        **owner_fields(event.namespace),
        doc_id=event.doc_id,
        path=event.document.path,
        name_id=place.namespace.name_id(event.label, key),
        namespace=place.namespace.owner,
        label=event.label,
        key=key,
        surface=strongest.surface,
        weight=strongest.weight,
        start=strongest.start,
        end=strongest.end,
        sentence=strongest.sentence,
        occurrences=[_occurrence(mention) for mention in occurrences[:OCCURRENCES_MAX]],
        count=len(occurrences),
        source=strongest.source,
        version=event.version,
    )


def _occurrence(mention: ExtractedMention) -> dict[str, object]:
    return {
        "start": mention.start,
        "end": mention.end,
        "surface": mention.surface,
        "weight": mention.weight,
        "sentence": mention.sentence,
    }


async def _verdicts(gate: Gate, words: Sequence[Word]) -> list[Verdict]:
    """What the documents' rows, as last written, make of each word."""
    verdicts: list[Verdict] = []
    for word, row in zip(words, await _documents(gate, words), strict=True):
        version = word.event.version
        if word.is_deletion or row is None:
            # No row at all: a rebuild cleared it, and the file's next event brings what is to come.
            verdicts.append(Verdict(word=word, rows=None, upto=version))
        elif row.source["deleted"]:
            upto = max(version, row.source["version"])
            verdicts.append(Verdict(word=word, rows=None, upto=upto))
        elif row.source["version"] > version:
            # What stands of former versions is the newer event's affair; it may have come before ours.
            verdicts.append(Verdict(word=word, rows=None, upto=version, since=version))
        else:
            verdicts.append(Verdict(word=word, rows=mention_rows(word), upto=version))
    return verdicts


async def _documents(gate: Gate, words: Sequence[Word]) -> list[StoredRow | None]:
    refs = [RowRef(principal=word.event.namespace.principal, row_id=word.doc_id) for word in words]
    return await gate.get_many(Index.DOCUMENTS, refs, fields=("version", "deleted")) if refs else []


async def _require_current(gate: Gate, verdicts: Sequence[Verdict]) -> None:
    """A newer event may have been linked, by another worker, before our rows came: then they are to go again."""
    current = [verdict.word for verdict in verdicts if verdict.rows]
    for word, row in zip(current, await _documents(gate, current), strict=True):
        if row is None or row.source["deleted"] or row.source["version"] > word.event.version:
            msg = "a document changed while its mentions were written"
            raise Transient(msg)


async def _write(gate: Gate, verdicts: Sequence[Verdict], edges: Edges) -> None:
    rows = [(v.word, row_id, row) for v in verdicts for row_id, row in (v.rows or {}).items()]
    refused: dict[tuple[str, int, int], Poisoned] = {}
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        results = await gate.write([_edge_write(row_id, row) for _, row_id, row in part])
        for (word, _, row), result in zip(part, results, strict=True):
            edges.affected[word.place].add(row.key)
            edges.written += result.status == "applied"
            if result.status == "rejected":
                error = PoisonRecord("rejected_by_store", f"{word.event.path}: {result.reason}")
                refused[word.record.place] = Poisoned(record=word.record, error=error)
    edges.rejected += refused.values()


async def _find_outdated(gate: Gate, verdicts: Sequence[Verdict], edges: Edges) -> None:
    by_tenant: defaultdict[TenantId, list[Group]] = defaultdict(list)
    for group in groups_of(verdicts):
        by_tenant[group[0].word.place.tenant_id].append(group)
    wanted = [
        Wanted(
            principal=Principal.pipeline(tenant_id),
            index=Index.MENTIONS,
            query=any_of(map(outdated_query, groups)),
            fields=_FIELDS,
        )
        for tenant_id, groups in by_tenant.items()
    ]
    for (tenant_id, groups), rows in zip(by_tenant.items(), await find_all(gate, wanted), strict=True):
        group_of = {(v.word.doc_id, v.word.event.label): group for group in groups for v in group}
        touched: dict[int, Group] = {}
        for row in rows:
            group = group_of[row.source["doc_id"], row.source["label"]]
            place = Place(
                namespace=EntityNamespace(tenant_id=tenant_id, owner=row.source["namespace"]),
                label=row.source["label"],
            )
            edges.affected[place].add(row.source["key"])
            edges.outdated[tenant_id].append(OutdatedEdge(row_id=row.row_id, version=group[0].upto))
            touched[id(group)] = group
        edges.excluded[tenant_id] += map(outdated_query, touched.values())


def any_of(queries: Iterable[Query]) -> dict[str, Any]:
    return {"bool": {"should": list(queries), "minimum_should_match": 1}}


def _edge_write(row_id: MentionId, row: MentionRow) -> RowWrite:
    return RowWrite(
        principal=Principal.pipeline(TenantId(row.tenant_id)),
        index=Index.MENTIONS,
        row_id=row_id,
        action="index",
        row=row,
        version=row.version,
    )
