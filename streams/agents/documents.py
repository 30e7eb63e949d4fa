"""Records of the documents topic → the newest word on each document, its stored state, its text.

What embed and extract have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from indexers.domain.identity import DocumentId, DocumentKey, TenantId
from indexers.domain.text import decode_text
from indexers.errors import PoisonRecord
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import Index
from streams.agents.vaults import Vaults, read_vault
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """The stored row of a document, as far as what follows from it depends on it."""

    version: int
    deleted: bool
    has_chunks: bool

    def overtakes(self, word: Word) -> bool:
        """Another event of this document is further: what `word` says is outdated."""
        return self.version > word.event.version or (self.deleted and not word.is_deletion)


async def current_words(gate: Gate, words: Sequence[Word]) -> list[Word]:
    """Without those that a later event overtook. Versions only grow, so this may be asked early."""
    states = await document_states(gate, words)
    return [w for w in words if (state := states.get(w.doc_id)) is not None and not state.overtakes(w)]


async def document_states(gate: Gate, words: Sequence[Word]) -> dict[DocumentId, DocumentState]:
    """As last written (realtime)."""
    refs = [RowRef(principal=w.event.namespace.principal, row_id=w.doc_id) for w in words]
    return await states_of(gate, refs)


async def states_of(gate: Gate, refs: Sequence[RowRef]) -> dict[DocumentId, DocumentState]:
    fields = ("version", "deleted", "no_vector_reason")
    rows = await gate.get_many(Index.DOCUMENTS, refs, fields=fields) if refs else []
    return {
        DocumentId(ref.row_id): _state(row.source)
        for ref, row in zip(refs, rows, strict=True)
        if row is not None
    }


def read_text(vaults: Vaults, document: DocumentKey, content_hash: str, cap_bytes: int) -> str | None:
    """The indexed text from the vault; None: the file has changed since, its next event is on the way. Blocking."""
    try:
        content = read_vault(vaults, document, cap_bytes)
    except FileNotFoundError:
        return None
    if content.content_hash != content_hash:
        return None
    return decode_text(content.head, max_bytes=cap_bytes).text


def _check(event: DocumentChanged) -> None:
    if event.kind not in ("upserted", "deleted"):
        raise PoisonRecord("invalid_fields", f"kind {event.kind!r} is neither upserted nor deleted")
    if event.doc_id != event.document.doc_id:
        raise PoisonRecord("invalid_fields", "doc_id is not the id of tenant, agent, scope and path")
    if [span.ordinal for span in event.chunks] != list(range(len(event.chunks))):
        raise PoisonRecord("invalid_fields", "the chunks' ordinals are not 0, 1, 2 …")


def _state(source: dict[str, Any]) -> DocumentState:
    return DocumentState(
        version=source["version"], deleted=source["deleted"], has_chunks=source["no_vector_reason"] is None
    )
