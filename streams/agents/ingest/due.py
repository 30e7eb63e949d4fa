"""Which relations a document shall have, and the rows that say so. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexers.domain.entities.relations import Statement
from indexers.domain.identity import DocumentKey, Principal
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import Index
from indexers.relations import DueRelations, due_relations
from streams.agents.ingest.decode import Arrival
from streams.agents.ingest.work import Work
from streams.batch import Record
from streams.events import FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a record says of where its document was before."""

    record: Record
    document: DocumentKey
    old_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The relations that one document shall have in this version."""

    document: DocumentKey
    version: int
    relations: DueRelations


def moves_of(arrivals: Sequence[Arrival]) -> list[Move]:
    """Of every event, also one that a newer one of its batch hides: that one doesn't tell of the move."""
    return [
        Move(
            record=arrival.record,
            document=arrival.document,
            old_path=arrival.document.namespace.document(arrival.event.moved_from).path,
        )
        for arrival in arrivals
        if isinstance(arrival.event, FileChange) and arrival.event.moved_from is not None
    ]


def due_of(work: Work, statements: Mapping[str, tuple[Statement, ...]]) -> Due:
    document, version = work.document, work.seen.version
    text = None if work.planned is None else work.planned.text
    relations = due_relations(document, version, text, statements[document.path])
    return Due(document=document, version=version, relations=relations)


def row_writes(due: Due) -> list[RowWrite]:
    principal = Principal.pipeline(due.document.namespace.tenant_id)
    rows = [
        RowWrite(
            principal=principal,
            index=Index.RELATIONS,
            row_id=row_id,
            action="index",
            row=row,
            version=due.version,
        )
        for row_id, row in due.relations.rows.items()
    ]
    return rows + [
        RowWrite(
            principal=principal, index=Index.RELATIONS, row_id=row_id, action="delete", version=due.version
        )
        for row_id in due.relations.gone
    ]
