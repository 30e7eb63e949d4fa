"""What is to be extracted: a document's word on the documents topic, or a document of a namespace done again. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from indexers.domain.identity import DocumentId, DocumentKey, EntityNamespace, Namespace
from indexers.extracted import StoredDocument
from streams.agents.documents import Word
from streams.batch import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One version of one document."""

    record: Record
    document: DocumentKey
    version: int
    content_hash: str
    #: The indexed text, None where it is to be read from the vault.
    text: str | None
    is_deletion: bool = False
    #: Of a deletion: for good.
    erased: bool = False
    #: Of a namespace that is done again; nothing has happened to the document itself.
    is_asked_again: bool = False
    #: Extracted even if that was done already.
    whole: bool = False
    #: Followed events: see `DocumentChanged.tracks`.
    tracks: tuple[str, ...] = ()
    #: When the document changed; None where nothing has happened to it.
    changed_at: str | None = None

    @property
    def doc_id(self) -> DocumentId:
        return self.document.doc_id

    @property
    def namespace(self) -> Namespace:
        return self.document.namespace

    @property
    def owner(self) -> EntityNamespace:
        return EntityNamespace.of(self.document.namespace)


def of_word(word: Word) -> Subject:
    """A document without chunks has no text that anything could stand in."""
    event = word.event
    return Subject(
        record=word.record,
        document=event.document,
        version=event.version,
        content_hash=event.content_hash,
        text=event.text if event.chunks else "",
        is_deletion=word.is_deletion,
        erased=event.erased,
        tracks=tuple(event.tracks),
        changed_at=event.occurred_at,
    )


def of_document(record: Record, document: StoredDocument, *, whole: bool) -> Subject:
    return Subject(
        record=record,
        document=document.namespace.document(document.path),
        version=document.version,
        content_hash=document.content_hash,
        text=None if document.has_text else "",
        is_asked_again=True,
        whole=whole,
    )


def newest_subjects(subjects: Iterable[Subject]) -> list[Subject]:
    """One a document, in the order of first mention; of equal versions what must be done, then what was told first."""
    newest: dict[DocumentId, Subject] = {}
    for subject in subjects:
        present = newest.get(subject.doc_id)
        if present is None or (subject.version, subject.whole) > (present.version, present.whole):
            newest[subject.doc_id] = subject
    return list(newest.values())
