"""Rows of every index, as typed records.

Field names are the mapping's; every row carries tenant, agent, team, scope.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from indexers.domain.identity import Namespace


class Index(StrEnum):
    DOCUMENTS = "documents"
    CHUNKS = "chunks"
    LINKS = "links"
    GATE = "gate"


class OwnedRow(msgspec.Struct, frozen=True, kw_only=True):
    tenant_id: str
    agent_id: str
    team_id: str | None
    scope: str


class DocumentRow(OwnedRow, frozen=True, kw_only=True):
    """Written whole and by ingest only. `body` is indexed and kept out of `_source` (see templates)."""

    doc_id: str
    path: str
    vault_path: str
    #: Keys that a link may name: see indexers.domain.links.
    path_key: str
    name_key: str
    alias_keys: list[str]
    title: str
    abstract: str
    doc_type: str
    source: str
    tags: list[str]
    category: str | None
    aliases: list[str]
    terms: list[str]
    language: str | None
    content_hash: str
    size: int
    #: Bytes of the file beyond the documented cap, 0 for nearly all.
    left_out_bytes: int
    #: Why the document has no vector ("empty", "not_text"), else None.
    no_vector_reason: str | None
    warnings: list[str]
    created_at: str | None
    updated_at: str | None
    indexed_at: str
    valid_from: str | None
    expires_at: str | None
    moved_from: str | None
    version: int
    event_id: str
    parser_version: str
    chunker_version: str
    deleted: bool
    #: When a tombstone may be dropped; None for living documents.
    tombstone_until: str | None
    #: Text for BM25; None in rows read back.
    body: str | None = None


class ChunkRow(OwnedRow, frozen=True, kw_only=True):
    doc_id: str
    ordinal: int
    #: Code-point offsets into the file's decoded text, end exclusive.
    start: int
    end: int
    heading_path: list[str]
    #: SHA-256 of the text that was embedded; vectors are reused by (tenant, chunk_hash, model_id).
    chunk_hash: str
    model_id: str
    chunker_version: str
    version: int
    vector: list[float] | None = None


class LinkRow(OwnedRow, frozen=True, kw_only=True):
    from_doc_id: str
    from_path: str
    to_doc_id: str | None
    #: As written, and the key that is compared with path_key, name_key and alias_keys.
    target: str
    target_key: str
    #: Last segment of target_key: what a basename is compared with.
    target_name_key: str
    link_type: str
    occurrences: list[dict[str, object]]
    resolved: bool
    ambiguous: bool
    version: int


class GateRow(OwnedRow, frozen=True, kw_only=True):
    """Written last of all by ingest: what is fully indexed, so that an unchanged file is skipped."""

    doc_id: str
    content_hash: str
    #: Parser, chunker and model versions in one string; another string means: index again.
    versions: str
    version: int
    event_id: str
    deleted: bool
    #: Aliases under which links were looked for: what a later version no longer has must be looked for once more.
    alias_keys: list[str] = []


def owner_fields(namespace: Namespace) -> dict[str, Any]:
    """The four fields that every row carries."""
    return {
        "tenant_id": namespace.tenant_id,
        "agent_id": namespace.agent_id,
        "team_id": namespace.team_id,
        "scope": namespace.scope.value,
    }
