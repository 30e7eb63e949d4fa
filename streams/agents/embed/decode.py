"""Records of the documents topic → the newest word on each document, and its chunks' texts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexers.domain.chunking import chunk_hash, embedding_text
from indexers.domain.identity import DocumentId, TenantId
from indexers.errors import PoisonRecord
from streams.batch import Poisoned, Record, decode_each
from streams.events import DocumentChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a record says of a document."""

    record: Record
    event: DocumentChanged

    @property
    def doc_id(self) -> DocumentId:
        return DocumentId(self.event.doc_id)

    @property
    def tenant_id(self) -> TenantId:
        return TenantId(self.event.tenant_id)

    @property
    def order(self) -> tuple[int, str]:
        return (self.event.version, self.event.event_id)

    @property
    def is_deletion(self) -> bool:
        return self.event.kind == "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What the model would be given, one text for each chunk, in the chunks' order."""

    word: Word
    texts: tuple[str, ...]


def decode_words(records: Sequence[Record]) -> tuple[list[Word], list[Poisoned]]:
    decoded, poisoned = decode_each(records, DocumentChanged)
    words: list[Word] = []
    for record, event in decoded:
        try:
            _check(event)
        except PoisonRecord as error:
            poisoned.append(Poisoned(record=record, error=error))
        else:
            words.append(Word(record=record, event=event))
    return words, poisoned


def newest_of_each(words: Sequence[Word]) -> list[Word]:
    """In the order of the documents' first records, so that a repeated batch does the same."""
    newest: dict[DocumentId, Word] = {}
    for word in words:
        present = newest.get(word.doc_id)
        if present is None or word.order > present.order:
            newest[word.doc_id] = word
    return list(newest.values())


def texts_of(word: Word, text: str) -> Texts | None:
    """None where the text is not the one that was chunked."""
    texts: list[str] = []
    for span in word.event.chunks:
        embedded = embedding_text(tuple(span.heading_path), text[span.start : span.end])
        if chunk_hash(embedded) != span.chunk_hash:
            return None
        texts.append(embedded)
    return Texts(word=word, texts=tuple(texts))


def _check(event: DocumentChanged) -> None:
    if event.kind not in ("upserted", "deleted"):
        raise PoisonRecord("invalid_fields", f"kind {event.kind!r} is neither upserted nor deleted")
    if event.doc_id != event.document.doc_id:
        raise PoisonRecord("invalid_fields", "doc_id is not the id of tenant, agent, scope and path")
    if [span.ordinal for span in event.chunks] != list(range(len(event.chunks))):
        raise PoisonRecord("invalid_fields", "the chunks' ordinals are not 0, 1, 2 …")
