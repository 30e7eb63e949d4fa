"""Token counts by a `tokenizer.json`: what the model will see, with nothing cut and nothing padded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from indexers.errors import ConfigurationError


class FileTokenizer:
    """TokenCounter of one tokenizer file. Thread-safe; ingest counts with it and needs no model."""

    def __init__(self, path: Path, *, name: str) -> None:
        # One model call must not spread over cores that the settings did not give it.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        content = path.read_bytes()
        try:
            self._tokenizer = Tokenizer.from_buffer(content)
        except Exception as exc:  # the library raises bare Exception
            raise ConfigurationError(f"{path} is no tokenizer file ({exc}): fetch the model again") from exc
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._id = f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
        frame: list[int] = self._tokenizer.encode("").ids
        if len(frame) != 2:
            raise ConfigurationError(
                f"{path}: one opening and one closing special token expected, found {frame}"
            )
        self.opening, self.closing = frame

    @property
    def tokenizer_id(self) -> str:
        return self._id

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.token_ids(texts)]

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Without special tokens. Raises ValueError for lone surrogates, which no file holds."""
        try:
            encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        except TypeError as exc:
            raise ValueError("a text with lone surrogates can't be tokenised") from exc
        return [encoding.ids for encoding in encoded]

    def prefix_ids(self, prefix: str) -> tuple[int, ...]:
        """Ids that `prefix` puts before any text: its trailing blank belongs to the word that follows."""
        return tuple(self.token_ids([prefix.rstrip()])[0]) if prefix.strip() else ()


def token_budget(window: int, *prefixes: Sequence[int]) -> int:
    """Tokens of a text itself: the window less two special tokens and the longest prefix."""
    return window - 2 - max(map(len, prefixes))
