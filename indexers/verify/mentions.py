"""From a document's side: its extraction, and the names that stand in its text. Pure."""

from __future__ import annotations

from typing import Any

from indexers.domain.entities.names import name_key
from indexers.domain.identity import DocumentId, EntityNamespace, mention_id
from indexers.opensearch.rows import MentionRow
from indexers.verify.files import StoredDocument
from indexers.verify.report import Kind, VerifyReport


def compare_mentions(
    report: VerifyReport,
    stored: StoredDocument,
    *,
    text: str,
    namespace: EntityNamespace,
    fingerprint: str | None,
) -> None:
    """`text`: as indexed. `fingerprint` None: the namespace's labels can't be used, so it can't be told."""
    path, extraction = stored.row.path, stored.extraction
    if extraction is None:
        report.add("missing_extraction", path, "its names have not been extracted")
    elif extraction.version != stored.row.version:
        report.add("stale_extraction", path, f"of version {extraction.version}, not {stored.row.version}")
    elif fingerprint is not None and extraction.fingerprint != fingerprint:
        report.add("stale_extraction", path, "with other labels, patterns, rules or another model")
    elif len(stored.mentions) != extraction.mentions:
        kind: Kind = "missing_mention" if len(stored.mentions) < extraction.mentions else "orphan_mention"
        report.add(kind, path, f"{len(stored.mentions)} names are linked, {extraction.mentions} were found")
    for row_id, row in stored.mentions.items():
        _compare_one(report, stored, row_id, row, text=text, namespace=namespace)


def _compare_one(
    report: VerifyReport,
    stored: StoredDocument,
    row_id: str,
    row: MentionRow,
    *,
    text: str,
    namespace: EntityNamespace,
) -> None:
    path, where = stored.row.path, f"{row.label} at {row.start}"
    if row.key != name_key(row.surface, row.label) or row.name_id != namespace.name_id(row.label, row.key):
        report.add("stale_mention", path, f"{where} points to another name")
    elif row_id != mention_id(DocumentId(row.doc_id), namespace.name_id(row.label, row.key)):
        report.add("duplicate_row", path, f"mention row {row_id} is not the name's own")
    elif (row.version, row.path, row.namespace) != (stored.row.version, path, namespace.owner):
        report.add("stale_mention", path, f"{where} is of version {row.version}, not {stored.row.version}")
    elif wrong := [place for place in _places(row) if not _stands(text, place)]:
        report.add("stale_mention", path, f"{where}: {len(wrong)} occurrences don't stand in the text")


def _places(row: MentionRow) -> list[dict[str, Any]]:
    return [{"start": row.start, "end": row.end, "surface": row.surface}, *row.occurrences]


def _stands(text: str, place: dict[str, Any]) -> bool:
    standing: str = text[place["start"] : place["end"]]
    return bool(standing == place["surface"])
