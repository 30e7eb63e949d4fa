"""Events and their strict JSON: a record that doesn't decode is a `PoisonRecord`, never an exception in Faust."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar, get_args
from uuid import UUID

import msgspec

from indexers.domain.identity import AgentId, DocumentKey, Namespace, Scope, TeamId, TenantId
from indexers.errors import PoisonRecord
from indexers.opensearch.rows import DocumentFacts
from streams.versions import is_possible

#: The number that this release writes into its events.
SCHEMA_VERSION: Final = 1
#: The numbers that it reads. One is read for a whole release before it is written, and as long afterwards as a log or
#: a journal of a vault may hold it (docs/reference/events.md).
READABLE: Final = frozenset({SCHEMA_VERSION})
MemoryChange = Literal["forgotten", "erased", "superseded"]
#: Kinds of `MemoryChanged`: other records of the topic have other kinds, or none.
MEMORY_CHANGES: Final[tuple[MemoryChange, ...]] = get_args(MemoryChange)


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that every event has. `version`: microseconds, assigned once by the producer (streams.versions)."""

    schema_version: int = SCHEMA_VERSION
    event_id: str
    tenant_id: str
    agent_id: str
    scope: Scope
    team_id: str | None = None
    occurred_at: str
    version: int

    @property
    def namespace(self) -> Namespace:
        return Namespace(
            tenant_id=TenantId(self.tenant_id),
            agent_id=AgentId(self.agent_id),
            scope=self.scope,
            team_id=None if self.team_id is None else TeamId(self.team_id),
        )


class PathEvent(Event, frozen=True, kw_only=True):
    path: str

    @property
    def document(self) -> DocumentKey:
        return self.namespace.document(self.path)


class FileChange(PathEvent, frozen=True, kw_only=True):
    """A file of the vault was seen (`upserted`) or is gone (`deleted`).

    `content` holds the raw bytes (base64 in JSON) up to the inline limit; above it None: the reader takes the file
    from the vault. The version is drawn before the file is read, so that a later change is always newer.
    """

    kind: str
    vault_path: str
    size: int = 0
    content: bytes | None = None
    modified_at: str | None = None
    #: Path in the same namespace: the other side of a rename.
    moved_from: str | None = None
    moved_to: str | None = None
    #: live, scan, rebuild or replay.
    origin: str = "live"


class MemoryWrite(PathEvent, frozen=True, kw_only=True):
    """A small text to become a file of the vault. `content` is Markdown without frontmatter."""

    title: str | None
    content: str
    doc_type: str = "memory"
    tags: list[str] = []
    category: str | None = None
    source: str | None = "memory_tool"
    session: str | None = None
    speaker: str | None = None
    position: int | None = None
    valid_from: str | None = None
    expires_at: str | None = None
    #: Of an update: the fields that it sets besides `content`; all else of the file stays. None: the whole file.
    updates: list[str] | None = None
    #: Somebody may ask how far it is: agents write stage rows for it (streams.agents.progress).
    tracked: bool = False


class MemoryChanged(PathEvent, frozen=True, kw_only=True):
    """What becomes of a document that is there; on the memory-writes topic, with the document's key.

    `forgotten`: its file is set aside where a person can take it back; `erased`: nothing of it stays; `superseded`:
    `superseded_by` (a document id) says it better now. `by`: the agent who says so.
    """

    kind: MemoryChange
    superseded_by: str | None = None
    by: str
    tracked: bool = False

    @property
    def is_ending(self) -> bool:
        return self.kind != "superseded"


class ChunkSpan(msgspec.Struct, frozen=True, kw_only=True):
    ordinal: int
    start: int
    end: int
    heading_path: list[str]
    chunk_hash: str


class DocumentChanged(PathEvent, frozen=True, kw_only=True):
    """What ingest tells the later agents: the parsed and chunked document (`upserted`) or its end (`deleted`).

    `text` is the indexed text that the spans point into; None where it is over the inline limit (then it is read
    from the vault and must match `content_hash`) or where there are no chunks.
    """

    kind: str
    doc_id: str
    content_hash: str
    chunker_version: str
    chunks: list[ChunkSpan] = []
    #: For the chunk rows. An event of before this field is read with the defaults: the rebuild that the new mapping
    #: needs tells of its document anew.
    facts: DocumentFacts = DocumentFacts()
    text: str | None = None
    #: Of a deletion: for good, with all that curators said of names that nothing else mentions.
    erased: bool = False
    #: Event ids of the memory writes that this version carries out, of those that are followed.
    tracks: list[str] = []
    #: Document ids, the other side of a rename.
    moved_from: str | None = None
    moved_to: str | None = None


class ExtractedMention(msgspec.Struct, frozen=True, kw_only=True):
    """A span of the document's text that names something. Code points, end exclusive; `weight` 0..1."""

    surface: str
    start: int
    end: int
    weight: float
    sentence: str
    #: `model` or `pattern`.
    source: str = "model"


class MentionsExtracted(PathEvent, frozen=True, kw_only=True):
    """All mentions of one label in one document version, none included: what isn't here is gone from the document.

    `kind`: `upserted`, or `deleted` for the document's end. Key: tenant/namespace/label (EntityNamespace.record_key).
    """

    kind: str
    doc_id: str
    label: str
    mentions: list[ExtractedMention] = []
    #: `occurred_at` of the event that changed the document; None: it is extracted again, or told of by an old worker.
    changed_at: str | None = None
    #: See `DocumentChanged`.
    erased: bool = False
    #: As in `DocumentChanged`.
    tracks: list[str] = []


class CurationCommand(Event, frozen=True, kw_only=True):
    """A curator's word on names of one label, on the same topic and key as the mentions. Owner: the namespace's.

    `keys` are normalised names: merge, unmerge, accept and reject speak of two, rename, block and unblock of one.
    """

    kind: Literal["merge", "unmerge", "rename", "block", "unblock", "accept", "reject"]
    label: str
    keys: list[str]
    name: str | None = None
    #: unmerge: the event id of the merge that is taken back.
    undoes: str | None = None
    #: Who (agent id) and why.
    by: str
    reason: str | None = None


class RelationWritten(PathEvent, frozen=True, kw_only=True):
    """Somebody states a relation and cites a document for it; on the memory-writes topic, with the document's key.

    `kind` tells it from a `MemoryWrite`: `related`, or `unrelated` to take it back. The quote must stand in the
    document's text, in which every run of white space counts as one blank; to take back it isn't needed.
    """

    kind: Literal["related", "unrelated"]
    subject: str
    subject_label: str
    relation_type: str
    object: str
    object_label: str
    quote: str = ""
    by: str


class ExtractRequested(Event, frozen=True, kw_only=True):
    """Extract the namespace's documents again, those after `after` (a document id) and no more than a page at once."""

    reason: str
    after: str | None = None
    done: int = 0
    #: Those too that were extracted with the present labels, patterns and model.
    whole: bool = False


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A parked record with all that a replay needs. `key` and `value` are the raw bytes (base64 in JSON)."""

    schema_version: int = SCHEMA_VERSION
    dead_letter_id: str
    agent: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    error_class: str
    reason: str
    failed_at: str
    tenant_id: str | None = None


E = TypeVar("E", bound=msgspec.Struct)
_encoder = msgspec.json.Encoder()


def encode(event: msgspec.Struct) -> bytes:
    return _encoder.encode(event)


def decode(value: bytes | None, kind: type[E]) -> E:
    """Strictly typed. Raises PoisonRecord with error_class null_value, not_json, invalid_fields or unknown_schema."""
    if value is None:
        raise PoisonRecord("null_value", "the record has no value; a deletion is an event of its own here")
    try:
        head = msgspec.json.decode(value, type=_Head)
    except msgspec.ValidationError as exc:
        raise PoisonRecord("invalid_fields", str(exc)) from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise PoisonRecord("not_json", str(exc)) from exc
    if head.schema_version not in READABLE:
        read = ", ".join(map(str, sorted(READABLE)))
        raise PoisonRecord(
            "unknown_schema", f"schema_version {head.schema_version}; this release reads {read}"
        )
    try:
        event = msgspec.json.decode(value, type=kind)
        if isinstance(event, PathEvent):
            _ = event.document
    except (msgspec.ValidationError, ValueError) as exc:
        raise PoisonRecord("invalid_fields", str(exc)) from exc
    if isinstance(event, Event) and not is_possible(event.version):
        raise PoisonRecord(
            "invalid_fields", f"version {event.version}: below 0, or over a day ahead of this worker's clock"
        )
    return event


def kind_of(value: bytes | None) -> object:
    """What tells events of one topic apart. None: there is none, let the strict decoder say what is wrong."""
    try:
        return msgspec.json.decode(value or b"", type=_Kind).kind
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def new_event_id() -> str:
    """UUIDv7 (RFC 9562 §5.7): 48 bits of milliseconds, then random; sorts by time."""
    stamp = time.time_ns() // 1_000_000
    raw = bytearray(stamp.to_bytes(6, "big") + os.urandom(10))
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    return str(UUID(bytes=bytes(raw)))


def now_iso() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def in_utc(moment: str) -> str:
    """As `now_iso` writes it: the store takes fewer forms of ISO 8601. Without an offset: UTC. Raises ValueError."""
    try:
        read = datetime.fromisoformat(moment)
        utc = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except OverflowError as exc:
        msg = f"{moment!r} is before the year 1 or after 9999"
        raise ValueError(msg) from exc
    return utc.isoformat(timespec="microseconds")


class _Head(msgspec.Struct):
    schema_version: int


class _Kind(msgspec.Struct):
    kind: object = None
