"""From statements and a document's text to the relation rows it shall have. Pure: for ingest, and for verify."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from indexers.domain.entities.evidence import find_quote
from indexers.domain.entities.names import name_key
from indexers.domain.entities.relations import Statement, newest
from indexers.domain.identity import DocumentKey, EntityNamespace, RelationId
from indexers.opensearch.rows import RelationRow, owner_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRelations:
    """`rows`: what the document says. `gone`: relations that it doesn't have (any more), whose rows must go."""

    rows: dict[RelationId, RelationRow]
    gone: tuple[RelationId, ...]
    #: Stated, but the quote doesn't stand in the text.
    unquoted: int


def due_relations(
    document: DocumentKey, version: int, text: str | None, statements: Iterable[Statement]
) -> DueRelations:
    """`statements`: all about this path. `text`: as indexed under this version; None: the document is deleted."""
    rows: dict[RelationId, RelationRow] = {}
    gone: list[RelationId] = []
    unquoted = 0
    for row_id, statement in newest(statements).items():
        place = None
        if statement.kind == "related" and text is not None:
            place = find_quote(text, statement.quote)
            unquoted += place is None
        if place is None or text is None:
            gone.append(row_id)
        else:
            rows[row_id] = _row(document, version, statement, text, place)
    return DueRelations(rows=rows, gone=tuple(gone), unquoted=unquoted)


def _row(
    document: DocumentKey, version: int, statement: Statement, text: str, place: tuple[int, int]
) -> RelationRow:
    owner = EntityNamespace.of(document.namespace)
    start, end = place
    return RelationRow(
        **owner_fields(document.namespace),
        doc_id=document.doc_id,
        path=document.path,
        namespace=owner.owner,
        subject=statement.subject,
        subject_label=statement.subject_label,
        subject_id=owner.name_id(
            statement.subject_label, name_key(statement.subject, statement.subject_label)
        ),
        relation_type=statement.relation_type,
        object=statement.object,
        object_label=statement.object_label,
        object_id=owner.name_id(statement.object_label, name_key(statement.object, statement.object_label)),
        quote=text[start:end],
        start=start,
        end=end,
        version=version,
    )
