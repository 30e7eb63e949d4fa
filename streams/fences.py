"""What is erased for good, as far as records that are still in a log are concerned: they are shown to nobody."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Final

from indexers.bookkeeping import ERASED
from indexers.domain.identity import Principal, TenantId
from indexers.errors import PoisonRecord, Transient
from indexers.opensearch.gate import Gate, RowRef, StoredRow
from indexers.opensearch.rows import Index
from streams.events import DeadLetter, PathEvent, decode

#: Letters looked up in one request.
_AT_ONCE: Final = 200


async def without_erased(gate: Gate, letters: AsyncIterable[DeadLetter]) -> AsyncIterator[DeadLetter]:
    """The letters, in order, but for those of a document that was erased since. Raises Transient."""
    portion: list[DeadLetter] = []
    async for letter in letters:
        portion.append(letter)
        if len(portion) == _AT_ONCE:
            for shown in await _shown(gate, portion):
                yield shown
            portion.clear()
    for shown in await _shown(gate, portion):
        yield shown


async def _shown(gate: Gate, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
    events = [_event_of(letter) for letter in letters]
    asked = [event for event in events if event is not None]
    refs = [
        RowRef(principal=Principal.pipeline(TenantId(event.tenant_id)), row_id=event.document.doc_id)
        for event in asked
    ]
    rows = await _documents(gate, refs)
    erased = {
        event.event_id
        for event, row in zip(asked, rows, strict=True)
        if row is not None
        and row.source["no_vector_reason"] == ERASED
        and row.source["version"] >= event.version
    }
    return [
        letter
        for letter, event in zip(letters, events, strict=True)
        if event is None or event.event_id not in erased
    ]


async def _documents(gate: Gate, refs: Sequence[RowRef]) -> list[StoredRow | None]:
    """An installation whose indices aren't made yet has erased nothing."""
    try:
        fields = ("version", "no_vector_reason")
        return await gate.get_many(Index.DOCUMENTS, refs, fields=fields) if refs else []
    except Transient as fault:
        if "index_not_found_exception" not in fault.reason:
            raise
        return [None] * len(refs)


def _event_of(letter: DeadLetter) -> PathEvent | None:
    """None: nothing that speaks of a document. Bytes that no agent could read name none either."""
    try:
        return decode(letter.value, PathEvent)
    except PoisonRecord:
        return None
