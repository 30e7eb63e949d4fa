"""A large index without a large wait: the pipeline's own rows, with vectors that are cheap to make.

Rows of documents and chunks are planned by the code that the agents use. Their vectors are not each chunk's own:
for each subject of bench/notes.py one chunk is embedded, and the subject's other chunks lie around it (seeded
noise). What a search costs depends on how many vectors there are and how they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from bench.cleaning import open_gate
from bench.notes import TOPICS, path, topic_of
from indexers.bookkeeping import gate_row
from indexers.domain.chunking import embedding_text
from indexers.domain.hashing import content_hash
from indexers.domain.identity import Namespace, Principal, chunk_id
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import ChunkRow, Index, OwnedRow, facts_of, owner_fields
from indexers.planning import (
    FileContent,
    IndexVersions,
    PlannedDocument,
    Seen,
    plan_document,
)
from indexers.ports import Embedder, Vectors
from indexers.settings import IndexingSettings
from tests.pipeline import Pipeline

NOISE = 0.35
NOTES_AT_ONCE = 200
VERSION = 1


def planned_notes(
    vault: Path, count: int, namespace: Namespace, embedder: Embedder
) -> Iterator[PlannedDocument]:
    settings = IndexingSettings()
    versions = IndexVersions.of(embedder, embedder.model_id, settings)
    for number in range(count):
        raw = (vault / path(number)).read_bytes()
        yield plan_document(
            _seen(namespace, path(number)),
            FileContent(head=raw, size=len(raw), content_hash=content_hash(raw)),
            counter=embedder,
            settings=settings,
            versions=versions,
            indexed_at="2026-11-30T00:00:00.000+00:00",
        )


def _seen(namespace: Namespace, note_path: str) -> Seen:
    return Seen(
        document=namespace.document(note_path), vault_path=note_path, version=VERSION, event_id="bench"
    )


def chunk_texts(planned: PlannedDocument) -> list[str]:
    return [embedding_text(c.heading_path, planned.text[c.start : c.end]) for c in planned.chunks]


async def fill_index(
    pipeline: Pipeline, vault: Path, count: int, namespace: Namespace, embedder: Embedder
) -> int:
    """Index the first `count` notes of the vault, without links; the number of chunks."""
    gate = open_gate(pipeline)
    try:
        await gate.ensure_indices(
            dimension=embedder.dimension, pair_id=embedder.pair_id, cosine_floor=embedder.cosine_floor
        )
        return await _fill(gate, vault, count, namespace, embedder)
    finally:
        await gate.close()


async def _fill(gate: Gate, vault: Path, count: int, namespace: Namespace, embedder: Embedder) -> int:
    versions = IndexVersions.of(embedder, embedder.model_id, IndexingSettings()).fingerprint
    notes = list(planned_notes(vault, count, namespace, embedder))
    centres = embedder.embed_passages([chunk_texts(note)[0] for note in notes[:TOPICS]])
    rnd = np.random.default_rng(0)
    chunks = 0
    for start in range(0, count, NOTES_AT_ONCE):
        part = notes[start : start + NOTES_AT_ONCE]
        writes = [
            write
            for number, note in enumerate(part, start)
            for write in note_writes(note, namespace, embedder.model_id, centres[topic_of(number)], rnd)
        ]
        passes = [_gate_write(note, namespace, versions) for note in part]
        results = await gate.write([*writes, *passes])
        if any(result.status != "applied" for result in results):
            raise RuntimeError("a row was not stored")
        chunks += len(writes) - len(part)
    await gate.refresh()
    return chunks


def note_writes(
    note: PlannedDocument,
    namespace: Namespace,
    model_id: str,
    centre: Vectors,
    rnd: np.random.Generator,
) -> Iterator[RowWrite]:
    """The document and its chunks, whose vectors lie around `centre`."""
    doc_id = note.row.doc_id
    yield _row_write(namespace, Index.DOCUMENTS, doc_id, note.row)
    document_id = namespace.document(note.row.path).doc_id
    facts = msgspec.structs.asdict(facts_of(note.row))
    owner = owner_fields(namespace)
    for chunk in note.chunks:
        row = ChunkRow(
            **owner,
            doc_id=doc_id,
            ordinal=chunk.ordinal,
            start=chunk.start,
            end=chunk.end,
            heading_path=list(chunk.heading_path),
            chunk_hash=chunk.chunk_hash,
            model_id=model_id,
            chunker_version=note.row.chunker_version,
            version=VERSION,
            **facts,
            vector=_near(centre, rnd),
        )
        yield _row_write(namespace, Index.CHUNKS, chunk_id(document_id, chunk.ordinal), row)


def _gate_write(note: PlannedDocument, namespace: Namespace, versions: str) -> RowWrite:
    row = gate_row(
        _seen(namespace, note.row.path),
        content_hash=note.row.content_hash,
        versions=versions,
        alias_keys=note.row.alias_keys,
        deleted=False,
    )
    return _row_write(namespace, Index.GATE, row.doc_id, row)


def _row_write(namespace: Namespace, index: Index, row_id: str, row: OwnedRow) -> RowWrite:
    """Of a fresh index: there is nothing to compare with, so the tenant's own maintenance writes it."""
    return RowWrite(
        principal=Principal.pipeline(namespace.tenant_id),
        index=index,
        row_id=row_id,
        action="index",
        row=row,
        version=VERSION,
    )


def _near(centre: Vectors, rnd: np.random.Generator) -> list[float]:
    noise = rnd.standard_normal(centre.shape[0]) * NOISE / np.sqrt(centre.shape[0])
    vector = centre + noise
    rounded: list[float] = np.round(vector / np.linalg.norm(vector), 7).tolist()
    return rounded
