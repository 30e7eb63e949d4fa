"""Words → token ids, as a GLiNER model reads them: labels as a prompt in front, each word on its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tokenizers import Encoding, Tokenizer

from indexers.domain.entities.windows import Word, split_words
from indexers.errors import ConfigurationError
from indexers.extractors.spec import GlinerSpec


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """The words of a window that have tokens; `of_word[i]`: the word (0-based) that token i belongs to.

    A sign of no width may have none: models skip it, and the library then counts all later words one too low.
    """

    words: list[Word]
    texts: list[str]
    ids: list[int]
    of_word: list[int]


class WordTokenizer:
    """Nothing is cut and nothing padded. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, spec: GlinerSpec, *, source: str) -> None:
        # One model call must not spread over cores that the settings did not give it.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._tokenizer = tokenizer
        frame: list[int] = tokenizer.encode("").ids
        if len(frame) != 2:
            raise ConfigurationError(
                f"{source}: one opening and one closing special token expected, found {frame}"
            )
        self.opening, self.closing = frame
        ent, sep = tokenizer.token_to_id(spec.ent_token), tokenizer.token_to_id(spec.sep_token)
        if ent is None or sep is None:
            raise ConfigurationError(f"{source} lacks the tokens {spec.ent_token} and {spec.sep_token}")
        self._ent, self._sep = ent, sep
        # A text has hundreds of windows with one prompt.
        self.prompt = lru_cache(maxsize=64)(self._prompt)

    def _prompt(self, labels: tuple[str, ...]) -> tuple[int, ...]:
        """ValueError for a label that the model can't be asked for."""
        ids: list[int] = []
        for label in labels:
            tokens: list[int] = self._encode([label])[0].ids if label.strip() else []
            if not tokens or self._ent in tokens or self._sep in tokens:
                raise ValueError(f"the label {label!r} says nothing to the model: give a word")
            ids += (self._ent, *tokens)
        return (*ids, self._sep)

    def read(self, windows: Sequence[str]) -> list[ReadWindow]:
        """Raises ValueError for lone surrogates, which no file holds."""
        words = [split_words(window) for window in windows]
        texts = [[w[a:b] for a, b in row] for w, row in zip(windows, words, strict=True)]
        rows = zip(words, texts, self._encode_batch(texts), strict=True)
        return [_read(row, text, encoding) for row, text, encoding in rows]

    def counts(self, words: Sequence[str]) -> list[int]:
        """Tokens of each word."""
        counts = [0] * len(words)
        for word in _of_words(self._encode(words)[0]):
            counts[word] += 1
        return counts

    def _encode(self, words: Sequence[str]) -> list[Encoding]:
        return self._encode_batch([words])

    def _encode_batch(self, rows: Sequence[Sequence[str]]) -> list[Encoding]:
        try:
            return list(
                self._tokenizer.encode_batch(
                    [list(row) for row in rows], is_pretokenized=True, add_special_tokens=False
                )
            )
        except TypeError as exc:
            raise ValueError("a text with lone surrogates can't be tokenised") from exc


def _read(words: list[Word], texts: list[str], encoding: Encoding) -> ReadWindow:
    of_word = _of_words(encoding)
    kept = sorted(set(of_word))
    if len(kept) == len(words):
        return ReadWindow(words, texts, encoding.ids, of_word)
    number = {word: i for i, word in enumerate(kept)}
    return ReadWindow(
        [words[i] for i in kept], [texts[i] for i in kept], encoding.ids, [number[i] for i in of_word]
    )


def _of_words(encoding: Encoding) -> list[int]:
    """No special tokens were added: every token belongs to a word."""
    return [word for word in encoding.word_ids if word is not None]


def read_tokenizer(path: Path, spec: GlinerSpec) -> WordTokenizer:
    """Files often say that texts are to be cut and padded at 128 tokens: that is undone."""
    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except Exception as exc:  # the library raises bare Exception
        raise ConfigurationError(f"{path} is no tokenizer file ({exc}): fetch the model again") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return WordTokenizer(tokenizer, spec, source=str(path))
