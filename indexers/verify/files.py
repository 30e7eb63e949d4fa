"""From the vault's side: each file, and the rows that it must have. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexers.domain.identity import DocumentId, chunk_id
from indexers.domain.links import Resolution
from indexers.opensearch.rows import (
    FACT_FIELDS,
    ChunkRow,
    DocumentRow,
    ExtractionRow,
    GateRow,
    LinkRow,
    MentionRow,
    RelationRow,
)
from indexers.planned_chunks import PlannedChunk
from indexers.planning import IndexVersions, PlannedDocument
from indexers.verify.report import VerifyReport

#: What the vault's bytes and path decide alone: neither event, clock, modification time nor former names.
DOCUMENT_FIELDS = (
    "path", "path_key", "name_key", "alias_keys", "title", "abstract", "doc_type", "source", "tags",
    "category", "aliases", "terms", "language", "content_hash", "size", "left_out_bytes", "no_vector_reason",
    "warnings", "name_keys", "health", "health_reasons", "session", "position", "speaker", "turn", "superseded_by",
    "created_at", "valid_from", "expires_at", "parser_version", "deleted",
)  # fmt: skip
CHUNK_FIELDS = (
    "start", "end", "heading_path", "chunk_hash", "model_id", "chunker_version", "version", *FACT_FIELDS,
)  # fmt: skip
LINK_FIELDS = ("from_path", "target", "target_key", "target_name_key", "link_type", "occurrences")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """All rows of one document, by id. Chunk rows without their vectors."""

    row: DocumentRow
    gate: GateRow | None
    chunks: Mapping[str, ChunkRow]
    links: Mapping[str, LinkRow]
    #: Rows of links that nobody wrote: see indexers.verify.unlinked.
    unlinked: Mapping[str, LinkRow]
    mentions: Mapping[str, MentionRow]
    relations: Mapping[str, RelationRow]
    extraction: ExtractionRow | None


def compare_document(
    report: VerifyReport, planned: PlannedDocument, stored: StoredDocument, versions: IndexVersions
) -> None:
    """Adds what differs, but for where links lead."""
    path = planned.row.path
    differing = [name for name in DOCUMENT_FIELDS if getattr(planned.row, name) != getattr(stored.row, name)]
    if stored.row.chunker_version not in versions.chunkers:
        differing.append("chunker_version")
    if differing:
        report.add("stale_document", path, f"differs in {', '.join(differing)}")
    _compare_gate(report, planned, stored, versions)
    _compare_chunks(report, planned, stored, versions)
    _compare_links(report, planned, stored)


def compare_resolutions(
    report: VerifyReport, rows: Sequence[LinkRow], resolutions: Sequence[Resolution]
) -> None:
    for row, due in zip(rows, resolutions, strict=True):
        where = f"{row.from_path} → {row.target}"
        if row.resolved != (row.to_doc_id is not None):
            report.add("wrong_link", where, "resolved and the target's id contradict each other")
        elif row.to_doc_id is None and due.to_doc_id is not None:
            report.add("dangling_link", where, f"should lead to {due.to_doc_id}")
        elif row.to_doc_id != due.to_doc_id:
            report.add(
                "wrong_link", where, f"leads to {row.to_doc_id}, should lead to {due.to_doc_id or 'nothing'}"
            )
        elif row.ambiguous != due.ambiguous:
            report.add("wrong_ambiguity", where, f"ambiguous is {row.ambiguous}")


def _compare_gate(
    report: VerifyReport, planned: PlannedDocument, stored: StoredDocument, versions: IndexVersions
) -> None:
    gate, path = stored.gate, planned.row.path
    if gate is None:
        report.add("missing_gate", path, "the document was not indexed to the end")
        return
    row = planned.row
    due = (
        row.content_hash,
        versions.fingerprint,
        stored.row.version,
        False,
        row.alias_keys,
        list(planned.names),
    )
    gate = versions.settled(gate)
    found = (gate.content_hash, gate.versions, gate.version, gate.deleted, gate.alias_keys, gate.names)
    if found != due:
        report.add("stale_gate", path, "the gate row is of another state of the document")


def _compare_chunks(
    report: VerifyReport, planned: PlannedDocument, stored: StoredDocument, versions: IndexVersions
) -> None:
    path, doc_id = planned.row.path, planned.row.doc_id
    due = {chunk_id(DocumentId(doc_id), chunk.ordinal): chunk for chunk in planned.chunks}
    for row_id, chunk in due.items():
        row = stored.chunks.get(row_id)
        if row is None:
            report.add("missing_chunk", path, f"chunk {chunk.ordinal}")
        elif differing := _chunk_differences(chunk, row, stored.row, versions):
            report.add("stale_chunk", path, f"chunk {chunk.ordinal} differs in {', '.join(differing)}")
    for foreign in sorted(set(stored.chunks) - set(due)):
        row = stored.chunks[foreign]
        named = chunk_id(DocumentId(doc_id), row.ordinal) == foreign
        report.add(
            "orphan_chunk" if named else "duplicate_row",
            path,
            f"chunk {row.ordinal} of version {row.version}",
        )


def _chunk_differences(
    chunk: PlannedChunk, row: ChunkRow, document: DocumentRow, versions: IndexVersions
) -> list[str]:
    due: dict[str, object] = {
        "start": chunk.start,
        "end": chunk.end,
        "heading_path": list(chunk.heading_path),
        "chunk_hash": chunk.chunk_hash,
        "model_id": versions.model_id,
        "chunker_version": versions.chunker,
        "version": document.version,
    }
    due |= {name: getattr(document, name) for name in FACT_FIELDS}
    return [name for name in CHUNK_FIELDS if getattr(row, name) != due[name]]


def _compare_links(report: VerifyReport, planned: PlannedDocument, stored: StoredDocument) -> None:
    path = planned.row.path
    for row_id, due in planned.links.items():
        row = stored.links.get(row_id)
        if row is None:
            report.add("missing_link", path, f"link to {due.target}")
        elif differing := [name for name in LINK_FIELDS if getattr(row, name) != getattr(due, name)]:
            report.add("stale_link", path, f"link to {due.target} differs in {', '.join(differing)}")
    for foreign in sorted(set(stored.links) - set(planned.links)):
        row = stored.links[foreign]
        current = row.version == stored.row.version
        report.add(
            "orphan_link" if current else "stale_link", path, f"link to {row.target} of version {row.version}"
        )
