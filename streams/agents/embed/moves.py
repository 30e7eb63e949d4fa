"""Vectors go along with a rename, whichever of its two events comes first.

The deletion writes the old vectors as rows of the new id before the old rows go, so the creation, which
looks for vectors by their text, finds them at any moment. Their version is below that of any creation whose
rows are still to come, also of one that is older than the deletion (a watcher that started anew tells both
again, and ingest leaves out the creation that it has): its own rows replace them, and what it doesn't replace
it removes as outdated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import msgspec

from indexers.domain.identity import DocumentId, Principal, chunk_id
from indexers.opensearch.find import DOCUMENTS_MAX, Wanted, find_pages
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import ChunkRow, Index
from indexers.opensearch.visibility import Query
from streams.agents.documents import DocumentState, Word, states_of
from streams.agents.embed.write import chunk_removal

States = Mapping[DocumentId, DocumentState]


async def carry_over(gate: Gate, deletions: Sequence[Word], model_id: str) -> int:
    """Number of rows left under new ids. Chunks are refreshed before; the old rows are removed afterwards."""
    moves = [word for word in deletions if word.event.moved_to is not None]
    states = await _states(gate, moves)
    awaited = [word for word in moves if not _needs_nothing(word, states)]
    if not awaited:
        return 0
    carried, unwanted = await _carry(gate, awaited, states, model_id)
    now = await _states(gate, awaited)
    unwanted |= {_new_id(word) for word in awaited if _needs_nothing(word, now)}
    dropped = [removal for new_id in unwanted for removal in carried.get(new_id, [])]
    if dropped:
        await gate.write(dropped)
    await gate.refresh(Index.CHUNKS)
    return sum(map(len, carried.values())) - len(dropped)


async def _states(gate: Gate, moves: Sequence[Word]) -> States:
    refs = [RowRef(principal=w.event.namespace.principal, row_id=_new_id(w)) for w in moves]
    return await states_of(gate, refs)


def _needs_nothing(word: Word, states: States) -> bool:
    """The new document is deleted again after the move, or has no chunks and so none to replace ours."""
    state = states.get(_new_id(word))
    if state is None:
        return False
    return state.version > word.event.version if state.deleted else not state.has_chunks


def _version(old: ChunkRow, state: DocumentState | None) -> int:
    """Above the rows of the new document that are gone or outdated, below those that stand or will come."""
    if state is None:
        return old.version
    return state.version if state.deleted else state.version - 1


async def _carry(
    gate: Gate, moves: Sequence[Word], states: States, model_id: str
) -> tuple[dict[DocumentId, list[RowWrite]], set[DocumentId]]:
    """What would remove the rows written, by new id; and new ids that met a newer row: they have their vectors."""
    by_old = {word.doc_id: word for word in moves}
    undo: defaultdict[DocumentId, list[RowWrite]] = defaultdict(list)
    beaten: set[DocumentId] = set()
    async with aclosing(find_pages(gate, _old_rows(moves, model_id))) as pages:
        async for _, rows in pages:
            olds = [msgspec.convert(row.source, ChunkRow) for row in rows]
            writes = [_moved(by_old[DocumentId(old.doc_id)], old, states) for old in olds]
            results = await gate.write(writes) if writes else []
            for old, write, result in zip(olds, writes, results, strict=True):
                new_id = _new_id(by_old[DocumentId(old.doc_id)])
                if result.status == "stale":
                    beaten.add(new_id)
                elif result.status == "applied" and write.version is not None:
                    undo[new_id].append(chunk_removal(write.principal, write.row_id, write.version))
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


def _moved(word: Word, old: ChunkRow, states: States) -> RowWrite:
    new_id = _new_id(word)
    version = _version(old, states.get(new_id))
    return RowWrite(
        principal=word.event.namespace.principal,
        index=Index.CHUNKS,
        row_id=chunk_id(new_id, old.ordinal),
        action="index",
        row=msgspec.structs.replace(old, doc_id=new_id, version=version),
        version=version,
    )
