"""From a document's side: the relations that it shall have by the vault's journal and its own text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexers.domain.entities.relations import Statement
from indexers.domain.identity import DocumentKey
from indexers.opensearch.rows import RelationRow
from indexers.relations import due_relations
from indexers.verify.report import VerifyReport

#: Statements of one vault root, by path.
Statements = Mapping[str, Sequence[Statement]]


def compare_relations(
    report: VerifyReport,
    document: DocumentKey,
    version: int,
    *,
    text: str,
    statements: Statements,
    stored: Mapping[str, RelationRow],
) -> None:
    """`text`: as indexed under this version. `stored`: the document's rows by id."""
    due = due_relations(document, version, text, statements.get(document.path, ())).rows
    for row_id, row in due.items():
        found = stored.get(row_id)
        if found is None:
            report.add("missing_relation", document.path, _words(row))
        elif differing := [n for n in row.__struct_fields__ if getattr(row, n) != getattr(found, n)]:
            report.add("stale_relation", document.path, f"{_words(row)} differs in {', '.join(differing)}")
    for foreign in sorted(set(stored) - set(due)):
        row = stored[foreign]
        report.add(
            "orphan_relation", document.path, f"{_words(row)}: not stated, or its quote isn't in the text"
        )
    report.relations += len(stored)


def _words(row: RelationRow) -> str:
    return f"{row.subject} {row.relation_type} {row.object}"
