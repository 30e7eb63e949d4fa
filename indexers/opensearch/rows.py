"""Rows of every index, as typed records.

Field names are the mapping's; every row carries tenant, agent, team, scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId


class Index(StrEnum):
    DOCUMENTS = "documents"
    CHUNKS = "chunks"
    LINKS = "links"
    GATE = "gate"
    ENTITIES = "entities"
    MENTIONS = "mentions"
    RELATIONS = "relations"
    PROPOSALS = "proposals"
    CURATION = "curation"
    EXTRACTIONS = "extractions"
    CONTROL = "control"
    EVENTS = "events"


#: Made of the vault, so a rebuild drops and restores it. The others are kept: the vault can't tell them.
REBUILT = tuple(index for index in Index if index not in (Index.CONTROL, Index.EVENTS))


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
    #: Names as other texts may say them: see indexers.domain.title_names.
    name_keys: list[str] = []
    #: 0..1 and what lowered it, as `rule:-0.4`: see indexers.domain.health.
    health: float = 1.0
    health_reasons: list[str] = []
    #: Place in a conversation or log: 0 is its first turn. `turn` joins both, None where either is missing.
    session: str | None = None
    position: int | None = None
    speaker: str | None = None
    turn: str | None = None
    #: Id of the document that says it better now, of the same owner; it need not exist.
    superseded_by: str | None = None
    #: Text for BM25, and for phrases of whole tokens; None in rows read back.
    body: str | None = None
    name_text: str | None = None


class DocumentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a chunk row repeats of its document, so that it can be ranked without the document's row.

    Fields of `DocumentRow` and `ChunkRow` by the same names.
    """

    doc_type: str = "note"
    source: str = "unknown"
    health: float = 1.0
    session: str | None = None
    position: int | None = None
    turn: str | None = None
    superseded_by: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    valid_from: str | None = None
    expires_at: str | None = None


FACT_FIELDS = DocumentFacts.__struct_fields__


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
    #: See `DocumentFacts`.
    doc_type: str = "note"
    source: str = "unknown"
    health: float = 1.0
    session: str | None = None
    position: int | None = None
    turn: str | None = None
    superseded_by: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    valid_from: str | None = None
    expires_at: str | None = None
    #: What is searched: see `indexers.domain.lead`.
    vector: list[float] | None = None
    #: That of the chunk's text alone where `vector` isn't: float32, little endian, base64. Reused by `chunk_hash`.
    own_vector: str | None = None


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
    #: Parser, chunker, model and health rules in one string; another string means: index again.
    versions: str
    version: int
    event_id: str
    deleted: bool
    #: Aliases under which links were looked for: what a later version no longer has must be looked for once more.
    alias_keys: list[str] = []
    #: Names under which texts were looked for, likewise.
    names: list[str] = []


class EntityRow(OwnedRow, frozen=True, kw_only=True):
    """One name of an entity. An entity is the set of names with one `entity_id`, which is its canonical name's id.

    Mentions point at names, names point at entities: joining, merging and undoing rewrite names alone.
    """

    name_id: str
    #: The name that it joined by likeness alone, its own id where it joined none.
    likeness_id: str
    #: With the merges of curators on top.
    entity_id: str
    #: EntityNamespace.owner.
    namespace: str
    label: str
    #: Normalised name: equal keys of one label are one name.
    key: str
    #: As people read it: the most frequent spelling, or what a curator chose.
    name: str
    canonical: bool
    #: Documents that mention this name: counted from the edges, never kept by adding up.
    mentions: int
    #: Of the canonical row: documents that mention any of the entity's names. Else 0.
    mention_count: int
    #: A curator said that this name is noise: its entity is shown nowhere.
    blocked: bool
    #: What similar names are found by: see indexers.domain.entities.names.
    grams: list[str]
    #: Names are compared by likeness only within equal blocks; None: by equality alone.
    block: str | None
    length: int


class MentionRow(OwnedRow, frozen=True, kw_only=True):
    """Edge document → name, with owner fields of the document."""

    doc_id: str
    path: str
    name_id: str
    namespace: str
    label: str
    key: str
    #: Of the strongest occurrence: text as written, confidence 0..1, code points in the file's text, its sentence.
    surface: str
    weight: float
    start: int
    end: int
    sentence: str
    #: The first ones (20 at most), as start, end, surface, weight, sentence; `count` says how many there are.
    occurrences: list[dict[str, object]]
    count: int
    #: `model` or `pattern`.
    source: str
    version: int


class RelationRow(OwnedRow, frozen=True, kw_only=True):
    """Edge name → name that somebody wrote, with the place in a document that says so. Owner: the document's."""

    doc_id: str
    path: str
    namespace: str
    subject: str
    subject_label: str
    subject_id: str
    relation_type: str
    object: str
    object_label: str
    object_id: str
    quote: str
    #: Where the quote stands, code points.
    start: int
    end: int
    version: int


class ProposalRow(OwnedRow, frozen=True, kw_only=True):
    """Two canonical names that may be one entity: a person decides. Gone once either name is, or it was decided."""

    namespace: str
    label: str
    entity_id: str
    other_id: str
    key: str
    other_key: str
    similarity: float
    #: similar, conflicting_tokens.
    reason: str


class CurationRow(OwnedRow, frozen=True, kw_only=True):
    """One command of a curator, as it stands in `.hopline/curation.jsonl` too. Id: the command's event id."""

    namespace: str
    label: str
    kind: str
    #: Names that it speaks of: merge, accept, reject, unmerge: two; rename, block, unblock: one.
    keys: list[str]
    #: rename: the new display name.
    name: str | None
    #: unmerge: event id of the merge that it takes back, None: the name leaves its entity.
    undoes: str | None
    by: str
    at: str
    reason: str | None
    version: int
    event_id: str


class ExtractionRow(OwnedRow, frozen=True, kw_only=True):
    """Written by the extract agent once the broker has its events: what was extracted with what. Id: the document's."""

    doc_id: str
    namespace: str
    version: int
    #: Labels, patterns, model and rules in one string; another string means: extract again.
    fingerprint: str
    #: Edges that link shall have made of it, one per (label, name).
    mentions: int
    #: Mentions that the evidence gate refused.
    rejected: int


class ControlRow(OwnedRow, frozen=True, kw_only=True):
    """What only this index knows (labels of namespaces). Id: kind and name."""

    kind: str
    name: str
    value: dict[str, Any]
    version: int
    updated_by: str
    updated_at: str


class EventRow(OwnedRow, frozen=True, kw_only=True):
    """How far one event is: a row a stage, made once. Owner: the document's. Ids: indexers.event_rows."""

    event_id: str
    #: accepted, ingested, embedded, extracted, linked, overtaken, failed; pointer, key, erased_key: see
    #: indexers.event_rows.
    stage: str
    at: str
    doc_id: str
    path: str
    version: int
    #: Of accepted: write, update, supersede, forget, erase.
    kind: str | None = None
    #: linked: the label; failed: the agent.
    part: str | None = None
    #: extracted: labels that the document mentions something of, so that link has something to do.
    parts: list[str] = []
    #: failed: the class of the error.
    reason: str | None = None
    #: accepted: hash of what was asked, and the event's own time: a repeated request sends the very same event.
    body_hash: str | None = None
    occurred_at: str | None = None


def owner_fields(namespace: Namespace) -> dict[str, Any]:
    """The four fields that every row carries."""
    return {
        "tenant_id": namespace.tenant_id,
        "agent_id": namespace.agent_id,
        "team_id": namespace.team_id,
        "scope": namespace.scope.value,
    }


def facts_of(row: DocumentRow) -> DocumentFacts:
    return DocumentFacts(**{name: getattr(row, name) for name in FACT_FIELDS})


def owner_of(tenant_id: TenantId, source: Mapping[str, Any]) -> Namespace:
    """From the fields of a row, the tenant from who asked for it."""
    team_id = source["team_id"]
    return Namespace(
        tenant_id=tenant_id,
        agent_id=AgentId(source["agent_id"]),
        scope=Scope(source["scope"]),
        team_id=None if team_id is None else TeamId(team_id),
    )
