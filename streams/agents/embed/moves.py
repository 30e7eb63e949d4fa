"""Vectors go along with a rename, whichever of its two events comes first.

The deletion writes the old vectors as rows of the new id before the old rows go, so the creation, which
looks for vectors by their text, finds them at any moment. They carry the deletion's version, which is older
than the creation's: its own rows replace them, and what it doesn't replace it removes as outdated.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from indexers.domain.identity import DocumentId, Principal, chunk_id
from indexers.opensearch.find import Wanted, find_pages
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import ChunkRow, Index
from streams.agents.embed.decode import Word
from streams.agents.embed.write import DocumentState, chunk_removal, states_of


async def carry_over(gate: Gate, deletions: Sequence[Word], model_id: str) -> int:
    """Number of rows left under new ids. Chunks are refreshed before; the old rows are removed afterwards."""
    moves = [word for word in deletions if word.event.moved_to is not None]
    carried: dict[DocumentId, list[RowWrite]] = {}
    unwanted: set[DocumentId] = set()
    for word in await _awaited(gate, moves):
        new_id = DocumentId(word.event.moved_to or "")
        writes, beaten = await _carry(gate, word, new_id, model_id)
        carried[new_id] = writes
        if beaten:
            unwanted.add(new_id)
    if not carried:
        return 0
    unwanted |= await _settled(gate, moves)
    dropped = [write for new_id in unwanted for write in carried.get(new_id, [])]
    if dropped:
        await gate.write([chunk_removal(w.principal, w.row_id, w.version or 0) for w in dropped])
    await gate.refresh(Index.CHUNKS)
    return sum(map(len, carried.values())) - len(dropped)


async def _awaited(gate: Gate, moves: Sequence[Word]) -> list[Word]:
    """Moves whose new document may still look for its vectors."""
    done = await _settled(gate, moves)
    return [word for word in moves if word.event.moved_to not in done]


async def _settled(gate: Gate, moves: Sequence[Word]) -> set[DocumentId]:
    """New ids that need nothing: the document is newer than the move and deleted again or without chunks."""
    refs = [RowRef(principal=w.event.namespace.principal, row_id=w.event.moved_to or "") for w in moves]
    states = await states_of(gate, refs)
    versions = {DocumentId(word.event.moved_to or ""): word.event.version for word in moves}
    return {new_id for new_id, state in states.items() if _needs_nothing(state, versions[new_id])}


def _needs_nothing(state: DocumentState, moved_at: int) -> bool:
    return state.version > moved_at and (state.deleted or not state.has_chunks)


async def _carry(gate: Gate, word: Word, new_id: DocumentId, model_id: str) -> tuple[list[RowWrite], bool]:
    """What was written, and whether a newer row was met: then the creation has its vectors already."""
    written: list[RowWrite] = []
    beaten = False
    async with aclosing(find_pages(gate, [_old_rows(word, model_id)])) as pages:
        async for _, rows in pages:
            if not rows:
                continue
            writes = [_moved(word, new_id, msgspec.convert(row.source, ChunkRow)) for row in rows]
            results = await gate.write(writes)
            beaten = beaten or any(result.status == "stale" for result in results)
            written += [w for w, result in zip(writes, results, strict=True) if result.status == "applied"]
    return written, beaten


def _old_rows(word: Word, model_id: str) -> Wanted:
    query = {
        "bool": {
            "filter": [
                {"term": {"doc_id": word.doc_id}},
                {"term": {"model_id": model_id}},
                {"range": {"version": {"lte": word.event.version}}},
            ]
        }
    }
    principal = Principal.pipeline(word.tenant_id)
    return Wanted(principal=principal, index=Index.CHUNKS, query=query, fields=ChunkRow.__struct_fields__)


def _moved(word: Word, new_id: DocumentId, old: ChunkRow) -> RowWrite:
    return RowWrite(
        principal=word.event.namespace.principal,
        index=Index.CHUNKS,
        row_id=chunk_id(new_id, old.ordinal),
        action="index",
        row=msgspec.structs.replace(old, doc_id=new_id, version=word.event.version),
        version=word.event.version,
    )
