"""The texts of a document's chunks as the model is given them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.domain.chunking import chunk_hash, embedding_text
from streams.agents.documents import Word


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
