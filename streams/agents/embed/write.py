"""Chunk rows into the store, nothing left of what no longer stands. Repeating any of it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from indexers.domain.identity import ChunkId, DocumentId, Principal, chunk_id
from indexers.domain.lead import Vector, searched_vector
from indexers.errors import PoisonRecord
from indexers.opensearch.find import DOCUMENTS_MAX, Wanted, find_all
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import ChunkRow, Index, owner_fields
from streams.agents.documents import Word, document_states
from streams.agents.embed.reuse import VectorKey, packed
from streams.batch import Poisoned
from streams.events import ChunkSpan

#: Rows turned into JSON at once.
ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A document version with the own vector of each of its chunks."""

    word: Word
    vectors: tuple[Vector, ...]


async def write_chunks(gate: Gate, documents: Sequence[Embedded], model_id: str) -> list[Poisoned]:
    """Newer rows stay. Returns the records of documents with a row that the store refuses."""
    pairs = [(document, at) for document in documents for at in range(len(document.vectors))]
    refused: dict[DocumentId, Poisoned] = {}
    for start in range(0, len(pairs), ROWS_AT_ONCE):
        part = pairs[start : start + ROWS_AT_ONCE]
        results = await gate.write([_chunk_write(document, at, model_id) for document, at in part])
        for (document, _), result in zip(part, results, strict=True):
            if result.status == "rejected":
                error = PoisonRecord("rejected_by_store", f"{document.word.event.path}: {result.reason}")
                refused[document.word.doc_id] = Poisoned(record=document.word.record, error=error)
    return list(refused.values())


async def remove_outdated(gate: Gate, words: Sequence[Word], model_id: str) -> None:
    """Rows beyond the present count, of earlier versions, of another model; all of a deleted document."""
    await gate.refresh(Index.CHUNKS)
    by_tenant: dict[Principal, list[Word]] = {}
    for word in words:
        by_tenant.setdefault(Principal.pipeline(word.tenant_id), []).append(word)
    wanted = [
        Wanted(
            principal=principal,
            index=Index.CHUNKS,
            query=outdated_query(members[start : start + DOCUMENTS_MAX], model_id),
            fields=("doc_id",),
        )
        for principal, members in by_tenant.items()
        for start in range(0, len(members), DOCUMENTS_MAX)
    ]
    versions = {word.doc_id: word.event.version for word in words}
    for one, rows in zip(wanted, await find_all(gate, wanted), strict=True):
        removals = [
            chunk_removal(one.principal, row.row_id, versions[DocumentId(row.source["doc_id"])])
            for row in rows
        ]
        if removals:
            await gate.write(removals)


async def remove_superseded(gate: Gate, words: Sequence[Word]) -> int:
    """Own rows away again where the document became newer or went meanwhile; how many documents."""
    stored = await document_states(gate, words)
    lost = [word for word in words if (state := stored.get(word.doc_id)) is None or state.overtakes(word)]
    removals = [
        chunk_removal(word.event.namespace.principal, chunk_id(word.doc_id, span.ordinal), word.event.version)
        for word in lost
        for span in word.event.chunks
    ]
    if removals:
        await gate.write(removals)
    return len(lost)


def outdated_query(words: Sequence[Word], model_id: str) -> dict[str, Any]:
    """Never rows of a newer version: those are another event's affair."""
    clauses: list[dict[str, Any]] = []
    for word in words:
        version = word.event.version
        clause: dict[str, Any] = {
            "filter": [{"term": {"doc_id": word.doc_id}}, {"range": {"version": {"lte": version}}}]
        }
        if not word.is_deletion:
            present = [
                {"term": {"version": version}},
                {"term": {"model_id": model_id}},
                {"range": {"ordinal": {"lt": len(word.event.chunks)}}},
            ]
            clause["must_not"] = [{"bool": {"filter": present}}]
        clauses.append({"bool": clause})
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def chunk_removal(principal: Principal, row_id: str, version: int) -> RowWrite:
    return RowWrite(principal=principal, index=Index.CHUNKS, row_id=row_id, action="delete", version=version)


def vectors_of(word: Word, known: Mapping[VectorKey, Vector]) -> Embedded:
    return Embedded(
        word=word, vectors=tuple(known[word.tenant_id, span.chunk_hash] for span in word.event.chunks)
    )


def vector_json(vector: Vector) -> list[float]:
    """Seven decimals hold all that a float32 of a unit vector says, in half the bytes."""
    rounded: list[float] = np.round(vector.astype(np.float64), 7).tolist()
    return rounded


def _chunk_write(document: Embedded, at: int, model_id: str) -> RowWrite:
    word = document.word
    span: ChunkSpan = word.event.chunks[at]
    own, lead = document.vectors[at], document.vectors[0]
    row = ChunkRow(
        **owner_fields(word.event.namespace),
        doc_id=word.doc_id,
        ordinal=span.ordinal,
        start=span.start,
        end=span.end,
        heading_path=span.heading_path,
        chunk_hash=span.chunk_hash,
        model_id=model_id,
        chunker_version=word.event.chunker_version,
        version=word.event.version,
        **msgspec.structs.asdict(word.event.facts),
        vector=vector_json(searched_vector(own, lead)),
        own_vector=None if own is lead else packed(own),
    )
    row_id: ChunkId = chunk_id(word.doc_id, span.ordinal)
    return RowWrite(
        principal=word.event.namespace.principal,
        index=Index.CHUNKS,
        row_id=row_id,
        action="index",
        row=row,
        version=word.event.version,
    )
