"""From one file's bytes to the rows it shall have. Pure; ingest writes them, verify compares with them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from indexers.domain import chunking, hashing, health, links, markdown, title_names
from indexers.domain.frontmatter import Frontmatter
from indexers.domain.identity import DocumentKey, LinkId
from indexers.domain.names import NOTE_SUFFIXES
from indexers.domain.sources import source_of
from indexers.domain.text import decode_text
from indexers.domain.title_names import names_of
from indexers.opensearch.generations import Generations
from indexers.opensearch.rows import DocumentRow, GateRow, LinkRow, owner_fields
from indexers.planned_chunks import PlannedChunk, plan_chunks
from indexers.planned_links import plan_links
from indexers.ports import TokenCounter
from indexers.settings import IndexingSettings

WARNING_HEALTH = "health_pattern_took_too_long"
WARNING_SUPERSEDED_BY_ITSELF = "superseded_by_itself"


@dataclass(frozen=True, kw_only=True)
class IndexVersions:
    """What decides how bytes become rows. Another value of any: the same bytes are indexed again."""

    parser: str
    chunker: str
    model_id: str
    health: str
    #: (chunker, model) of what a reindex has carried over: see indexers.opensearch.generations.
    alike: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(
        cls,
        counter: TokenCounter,
        model_id: str,
        settings: IndexingSettings,
        known: Generations | None = None,
    ) -> IndexVersions:
        chunker = chunking.chunker_version(counter, settings.chunk_max_tokens)
        return cls(
            parser=markdown.PARSER_VERSION,
            chunker=chunker,
            model_id=model_id,
            health=settings.health.rules.fingerprint,
            alike=frozenset() if known is None else known.alike((chunker, model_id)),
        )

    @property
    def fingerprint(self) -> str:
        return hashing.versions_fingerprint(self.parser, self.chunker, self.model_id, self.health)

    @cached_property
    def fingerprints(self) -> frozenset[str]:
        """Those that count as this one's."""
        alike = {hashing.versions_fingerprint(self.parser, c, m, self.health) for c, m in self.alike}
        return frozenset({self.fingerprint, *alike})

    @property
    def chunkers(self) -> frozenset[str]:
        return frozenset({self.chunker, *(chunker for chunker, _ in self.alike)})

    def settled(self, row: GateRow) -> GateRow:
        """The row as if this had made it, where what made it counts as this."""
        if row.versions == self.fingerprint or row.versions not in self.fingerprints:
            return row
        return msgspec.structs.replace(row, versions=self.fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file's bytes as far as they are indexed, with the hash and size of all of them."""

    head: bytes
    size: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One sight of one document: who, where on disk, and the event that told of it."""

    document: DocumentKey
    vault_path: str
    version: int
    event_id: str
    modified_at: str | None = None
    moved_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidText:
    text: str
    said: tuple[title_names.Said, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDocument:
    row: DocumentRow
    links: dict[LinkId, LinkRow]
    chunks: tuple[PlannedChunk, ...]
    #: The text that the chunks' offsets point into.
    text: str
    #: Its prose, token by token, and the names under which other texts may speak of it.
    said: tuple[title_names.Said, ...]
    names: tuple[str, ...]


def plan_document(
    seen: Seen,
    content: FileContent,
    *,
    counter: TokenCounter,
    settings: IndexingSettings,
    versions: IndexVersions,
    indexed_at: str,
) -> PlannedDocument:
    """Rows of a living document. Counts tokens, so it takes milliseconds to seconds: off the event loop."""
    decoded = decode_text(content.head, max_bytes=settings.document_max_bytes)
    text = decoded.text if decoded.is_text else ""
    note = markdown.parse(text, path=seen.document.path, frontmatter_max_bytes=settings.frontmatter_max_bytes)
    chunks, chunk_warnings = plan_chunks(note, counter=counter, max_tokens=settings.chunk_max_tokens)
    left_out = decoded.left_out_bytes + content.size - len(content.head)
    said = title_names.read_pieces(note.text, note.prose)
    row = _judged(_document_row(seen, content, note, versions, indexed_at, left_out), settings)
    reason = None if chunks else ("empty" if decoded.is_text else "not_text")
    row = msgspec.structs.replace(
        row,
        no_vector_reason=reason,
        warnings=sorted({*row.warnings, *decoded.warnings, *chunk_warnings}),
        name_text=title_names.indexed_text(said),
    )
    return PlannedDocument(
        row=row,
        links=plan_links(seen.document, note.links, version=seen.version),
        chunks=chunks,
        text=note.text,
        said=said,
        names=names_of(row.title, row.aliases),
    )


def said_of(key: DocumentKey, content: FileContent, settings: IndexingSettings) -> SaidText:
    """What a file's text says, as `plan_document` reads it."""
    decoded = decode_text(content.head, max_bytes=settings.document_max_bytes)
    text = decoded.text if decoded.is_text else ""
    note = markdown.parse(text, path=key.path, frontmatter_max_bytes=settings.frontmatter_max_bytes)
    return SaidText(text=note.text, said=title_names.read_pieces(note.text, note.prose))


def _document_row(
    seen: Seen,
    content: FileContent,
    note: markdown.ParsedNote,
    versions: IndexVersions,
    indexed_at: str,
    left_out: int,
) -> DocumentRow:
    moved_from = None if seen.moved_from is None else seen.document.namespace.document(seen.moved_from).doc_id
    return DocumentRow(
        **owner_fields(seen.document.namespace),
        **_names_of_itself(seen.document.path, note),
        **_said_of_itself(seen.document, note.frontmatter),
        doc_id=seen.document.doc_id,
        path=seen.document.path,
        vault_path=seen.vault_path,
        title=note.title,
        abstract=note.abstract,
        tags=list(note.tags),
        terms=list(note.terms),
        language=note.language,
        content_hash=content.content_hash,
        size=content.size,
        left_out_bytes=left_out,
        no_vector_reason=None,
        warnings=sorted(set(note.warnings)),
        updated_at=note.frontmatter.updated or seen.modified_at,
        indexed_at=indexed_at,
        moved_from=moved_from,
        version=seen.version,
        event_id=seen.event_id,
        parser_version=versions.parser,
        chunker_version=versions.chunker,
        deleted=False,
        tombstone_until=None,
        body=unicodedata.normalize("NFC", note.text[note.body_start :]),
    )


def _names_of_itself(path: str, note: markdown.ParsedNote) -> dict[str, Any]:
    """Fields of the row that are made of path, title and aliases: what links and other texts may name it by."""
    front = note.frontmatter
    keys = links.document_keys(path, front.aliases)
    return {
        "path_key": keys.path_key,
        "name_key": keys.name_key,
        "alias_keys": list(keys.alias_keys),
        "name_keys": list(title_names.name_keys(names_of(note.title, front.aliases))),
        "source": source_of(front.source, keys.name_key),
    }


def _said_of_itself(document: DocumentKey, front: Frontmatter) -> dict[str, Any]:
    """Fields of the row that the frontmatter alone gives."""
    return {
        "doc_type": front.doc_type or "note",
        "category": front.category,
        "aliases": list(front.aliases),
        "created_at": front.created,
        "valid_from": front.valid_from,
        "expires_at": front.expires_at,
        "session": front.session,
        "position": front.position,
        "speaker": front.speaker,
        "turn": turn_of(front.session, front.position),
        "superseded_by": _superseded_by(document, front.superseded_by),
    }


def _judged(row: DocumentRow, settings: IndexingSettings) -> DocumentRow:
    """With health and its reasons; a document that says that it supersedes itself is superseded by nothing."""
    found = health.assess(row.doc_type, row.body or "", row.tags, settings.health.rules)
    itself = row.superseded_by == row.doc_id
    warnings = [WARNING_HEALTH] * bool(found.timed_out) + [WARNING_SUPERSEDED_BY_ITSELF] * itself
    return msgspec.structs.replace(
        row,
        health=found.value,
        health_reasons=[str(reason) for reason in found.reasons],
        superseded_by=None if itself else row.superseded_by,
        warnings=[*row.warnings, *warnings],
    )


def turn_of(session: str | None, position: int | None) -> str | None:
    """What the turns before and after are found by: `{session}#{position}`."""
    return None if session is None or position is None else f"{session}#{position}"


def _superseded_by(document: DocumentKey, written: str | None) -> str | None:
    """A path becomes the id that its document has, or would have, with the same owner."""
    if written is None or not written.casefold().endswith(NOTE_SUFFIXES):
        return written
    return document.namespace.document(written).doc_id
