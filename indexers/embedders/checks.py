"""Rules of the embedder port that every adapter keeps in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indexers.ports import Vectors


def check_passages(texts: Sequence[str], counts: Sequence[int], *, max_tokens: int) -> None:
    """Raises ValueError for an empty, blank or too long text; positions are named, never the text."""
    for position, (text, count) in enumerate(zip(texts, counts, strict=True)):
        if not text.strip():
            raise ValueError(f"text {position} is empty or blank: it has no vector")
        if count > max_tokens:
            raise ValueError(
                f"text {position} has {count} tokens, the model takes {max_tokens}: chunk it first"
            )


def check_query(text: str) -> None:
    if not text.strip():
        raise ValueError("an empty or blank query has no vector")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("a query with lone surrogates can't be tokenised")


def unit_rows(raw: Any) -> Vectors:
    """float32, each row of length 1."""
    vectors: Vectors = np.asarray(raw, np.float32)
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths
