"""The texts of a document's chunks as the model is given them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec import structs

from indexers.domain import markdown
from indexers.domain.chunking import chunk_hash, embedding_text
from indexers.planned_chunks import PlannedChunk, plan_chunks
from indexers.ports import TokenCounter
from indexers.settings import IndexingSettings
from streams.agents.documents import Word
from streams.events import ChunkSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What the model would be given, one text for each chunk, in the chunks' order."""

    word: Word
    texts: tuple[str, ...]


def texts_of(word: Word, text: str) -> Texts | None:
    """None where the text is not the one that was chunked."""
    texts: list[str] = []
    for span in word.event.chunks:
        embedded = embedding_text(tuple(span.heading_path), text[span.start : span.end])
        if chunk_hash(embedded) != span.chunk_hash:
            return None
        texts.append(embedded)
    return Texts(word=word, texts=tuple(texts))


def cut_anew(word: Word, text: str, counter: TokenCounter, settings: IndexingSettings, chunker: str) -> Word:
    """With the chunks that `counter` makes of the text. Counts tokens: off the event loop."""
    note = markdown.parse(text, path=word.event.path, frontmatter_max_bytes=settings.frontmatter_max_bytes)
    chunks, _ = plan_chunks(note, counter=counter, max_tokens=settings.chunk_max_tokens)
    spans = [span_of(chunk) for chunk in chunks]
    return replace(word, event=structs.replace(word.event, chunks=spans, chunker_version=chunker))


def span_of(chunk: PlannedChunk) -> ChunkSpan:
    return ChunkSpan(
        ordinal=chunk.ordinal,
        start=chunk.start,
        end=chunk.end,
        heading_path=list(chunk.heading_path),
        chunk_hash=chunk.chunk_hash,
    )
