"""Vectors go along with a rename, whichever of its two events comes first.

The deletion writes the old vectors as rows of the new id before the old rows go, so the creation, which
looks for vectors by their text, finds them at any moment. They carry the deletion's version, which is older
than the creation's: its own rows replace them, and what it doesn't replace it removes as outdated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from indexers.domain.identity import DocumentId, Principal, chunk_id
from indexers.opensearch.find import DOCUMENTS_MAX, Wanted, find_pages
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import ChunkRow, Index
from indexers.opensearch.visibility import Query
from streams.agents.embed.decode import Word
from streams.agents.embed.write import DocumentState, chunk_removal, states_of


async def carry_over(gate: Gate, deletions: Sequence[Word], model_id: str) -> int:
    """Number of rows left under new ids. Chunks are refreshed before; the old rows are removed afterwards."""
    moves = [word for word in deletions if word.event.moved_to is not None]
    awaited = await _awaited(gate, moves)
    if not awaited:
        return 0
    carried, unwanted = await _carry(gate, awaited, model_id)
    unwanted |= await _settled(gate, moves)
    dropped = [removal for new_id in unwanted for removal in carried.get(new_id, [])]
    if dropped:
        await gate.write(dropped)
    await gate.refresh(Index.CHUNKS)
    return sum(map(len, carried.values())) - len(dropped)


async def _awaited(gate: Gate, moves: Sequence[Word]) -> list[Word]:
    """Moves whose new document may still look for its vectors."""
    done = await _settled(gate, moves)
    return [word for word in moves if _new_id(word) not in done]


async def _settled(gate: Gate, moves: Sequence[Word]) -> set[DocumentId]:
    """New ids that need nothing: the document is newer than the move and deleted again or without chunks."""
    refs = [RowRef(principal=w.event.namespace.principal, row_id=_new_id(w)) for w in moves]
    states = await states_of(gate, refs)
    versions = {_new_id(word): word.event.version for word in moves}
    return {new_id for new_id, state in states.items() if _needs_nothing(state, versions[new_id])}


def _needs_nothing(state: DocumentState, moved_at: int) -> bool:
    return state.version > moved_at and (state.deleted or not state.has_chunks)


async def _carry(
    gate: Gate, moves: Sequence[Word], model_id: str
) -> tuple[dict[DocumentId, list[RowWrite]], set[DocumentId]]:
    """What would remove the rows written, by new id; and new ids that met a newer row: they have their vectors."""
    by_old = {word.doc_id: word for word in moves}
    undo: defaultdict[DocumentId, list[RowWrite]] = defaultdict(list)
    beaten: set[DocumentId] = set()
    async with aclosing(find_pages(gate, _old_rows(moves, model_id))) as pages:
        async for _, rows in pages:
            olds = [msgspec.convert(row.source, ChunkRow) for row in rows]
            writes = [_moved(by_old[DocumentId(old.doc_id)], old) for old in olds]
            results = await gate.write(writes) if writes else []
            for old, write, result in zip(olds, writes, results, strict=True):
                word = by_old[DocumentId(old.doc_id)]
                if result.status == "stale":
                    beaten.add(_new_id(word))
                elif result.status == "applied":
                    undo[_new_id(word)].append(
                        chunk_removal(write.principal, write.row_id, word.event.version)
                    )
    return dict(undo), beaten


def _old_rows(moves: Sequence[Word], model_id: str) -> list[Wanted]:
    """One find for all moves of a tenant; a page holds at most as many vectors as for one move."""
    by_tenant: defaultdict[Principal, list[Word]] = defaultdict(list)
    for word in moves:
        by_tenant[Principal.pipeline(word.tenant_id)].append(word)
    return [
        Wanted(
            principal=principal,
            index=Index.CHUNKS,
            query=_before_moves(words[start : start + DOCUMENTS_MAX], model_id),
            fields=ChunkRow.__struct_fields__,
        )
        for principal, words in by_tenant.items()
        for start in range(0, len(words), DOCUMENTS_MAX)
    ]


def _before_moves(words: Sequence[Word], model_id: str) -> Query:
    clauses: list[Query] = [
        {
            "bool": {
                "filter": [{"term": {"doc_id": w.doc_id}}, {"range": {"version": {"lte": w.event.version}}}]
            }
        }
        for w in words
    ]
    return {
        "bool": {
            "filter": [{"term": {"model_id": model_id}}],
            "should": clauses,
            "minimum_should_match": 1,
        }
    }


def _new_id(word: Word) -> DocumentId:
    return DocumentId(word.event.moved_to or "")


def _moved(word: Word, old: ChunkRow) -> RowWrite:
    new_id = _new_id(word)
    return RowWrite(
        principal=word.event.namespace.principal,
        index=Index.CHUNKS,
        row_id=chunk_id(new_id, old.ordinal),
        action="index",
        row=msgspec.structs.replace(old, doc_id=new_id, version=word.event.version),
        version=word.event.version,
    )
