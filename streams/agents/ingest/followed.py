"""What is known of a batch's documents before it is carried out, and what is told of its followed events after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from indexers.domain import hashing
from indexers.domain.identity import DocumentId
from indexers.event_rows import stage_id
from indexers.opensearch.gate import Gate, RowAsked, RowRef
from indexers.opensearch.rows import EventRow, GateRow, Index
from streams.agents.ingest.content import render
from streams.agents.ingest.decode import MemoryEvent
from streams.agents.ingest.plan import Choice, Sight, is_whole
from streams.agents.ingest.write import Written
from streams.agents.progress import of_memory, stages
from streams.events import MemoryWrite


async def known_of(
    gate: Gate, choices: Mapping[DocumentId, Choice]
) -> tuple[dict[DocumentId, GateRow], set[str]]:
    """What is indexed of the documents, and which of the followed events were overtaken before."""
    gates = [_asked(Index.GATE, choice, doc_id) for doc_id, choice in choices.items()]
    followed = {
        event.event_id: _asked(Index.EVENTS, choice, stage_id(event.event_id, "overtaken"))
        for choice in choices.values()
        for event in choice.newest.memories
        if event.tracked
    }
    asked = [*gates, *followed.values()]
    found = await gate.get_rows(asked) if asked else []
    rows = {
        doc_id: msgspec.convert(row.source, GateRow)
        for doc_id, row in zip(choices, found, strict=False)
        if row is not None
    }
    told = zip(followed, found[len(gates) :], strict=True)
    return rows, {event_id for event_id, row in told if row is not None}


def known_hashes(sight: Sight, former: GateRow | None) -> set[str]:
    """What the file of a memory may hold without being anybody's edit."""
    writes = {
        hashing.content_hash(render(one))
        for one in sight.memories
        if isinstance(one, MemoryWrite) and is_whole(one)
    }
    return writes if former is None or former.deleted else writes | {former.content_hash}


def told_of(written: Written, overtaken: Sequence[MemoryEvent]) -> list[EventRow]:
    """Stages of the followed events. What was refused is told of with its dead letter."""
    ingested = [event for work in written.applied for event in work.tracks]
    stale = [event for work in written.stale for event in work.tracks]
    # Of what is erased nobody is told: a row would hold its path.
    erased = {work.arrival.doc_id for work in written.applied if work.arrival.is_erasure}
    left = [event for event in (*stale, *overtaken) if event.document.doc_id not in erased]
    return [*stages(of_memory(ingested), "ingested"), *stages(of_memory(left), "overtaken")]


def _asked(index: Index, choice: Choice, row_id: str) -> RowAsked:
    principal = choice.newest.arrival.document.namespace.principal
    fields = None if index is Index.GATE else ("event_id",)
    return RowAsked(index=index, ref=RowRef(principal=principal, row_id=row_id), fields=fields)
