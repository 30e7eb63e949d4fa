"""The chunks of a note as the later agents are told of them. Pure; counts tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexers.domain import chunking
from indexers.domain.note import ParsedNote
from indexers.ports import TokenCounter

#: The spans travel in one event: of a file that is all headings, the chunks beyond this have no vector.
SPANS_MAX_BYTES = 1_000_000
SPAN_BYTES = 200
WARNING_CHUNKS = "chunks_left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChunk:
    ordinal: int
    start: int
    end: int
    heading_path: tuple[str, ...]
    chunk_hash: str


def plan_chunks(
    note: ParsedNote, *, counter: TokenCounter, max_tokens: int
) -> tuple[tuple[PlannedChunk, ...], tuple[str, ...]]:
    """Chunks in order, and a warning where some are left out."""
    spans = chunking.chunk(note, counter=counter, max_tokens=max_tokens)
    chunks = _within_budget([_planned_chunk(note.text, span) for span in spans])
    return chunks, (WARNING_CHUNKS,) if len(chunks) < len(spans) else ()


def _within_budget(chunks: Sequence[PlannedChunk]) -> tuple[PlannedChunk, ...]:
    used = 0
    for at, chunk in enumerate(chunks):
        used += SPAN_BYTES + sum(len(heading.encode()) + 3 for heading in chunk.heading_path)
        if used > SPANS_MAX_BYTES:
            return tuple(chunks[:at])
    return tuple(chunks)


def _planned_chunk(text: str, span: chunking.Chunk) -> PlannedChunk:
    embedded = chunking.embedding_text(span.heading_path, text[span.start : span.end])
    return PlannedChunk(
        ordinal=span.ordinal,
        start=span.start,
        end=span.end,
        heading_path=tuple(span.heading_path),
        chunk_hash=chunking.chunk_hash(embedded),
    )
