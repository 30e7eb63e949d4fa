"""Words → token ids, as a GLiNER model reads them: labels as a prompt in front, each word on its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from tokenizers import Encoding, Tokenizer

from indexers.domain.entities.windows import Word, split_words
from indexers.errors import ConfigurationError, RefusedInput
from indexers.extractors.spec import GlinerSpec

#: Words whose tokens are remembered, and the longest of them (characters): a few megabytes.
REMEMBERED_WORDS: Final = 20_000
REMEMBERED_CHARS: Final = 40
_Tokens = tuple[int, ...]


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
    """Nothing is cut and nothing padded. Thread-safe.

    A word's tokens don't depend on its neighbours (each is encoded by itself), so those of common words are
    remembered: a text's words are counted first and read once more window by window.
    """

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
        self._remembered: dict[str, _Tokens] = {}

    def _prompt(self, labels: tuple[str, ...]) -> tuple[int, ...]:
        """RefusedInput for a label that the model can't be asked for."""
        ids: list[int] = []
        for label in labels:
            tokens: list[int] = self._encode([label]).ids if label.strip() else []
            if not tokens or self._ent in tokens or self._sep in tokens:
                raise RefusedInput(f"the label {label!r} says nothing to the model: give a word")
            ids += (self._ent, *tokens)
        return (*ids, self._sep)

    def read(self, windows: Sequence[str]) -> list[ReadWindow]:
        """Raises RefusedInput for lone surrogates, which no file holds."""
        return [self._read(window) for window in windows]

    def counts(self, words: Sequence[str]) -> list[int]:
        """Tokens of each word."""
        tokens = self._tokens(words)
        return [len(tokens[word]) for word in words]

    def _read(self, window: str) -> ReadWindow:
        words = split_words(window)
        texts = [window[start:end] for start, end in words]
        tokens = self._tokens(texts)
        ids: list[int] = []
        of_word: list[int] = []
        kept: list[int] = []
        for at, text in enumerate(texts):
            if found := tokens[text]:
                ids += found
                of_word += [len(kept)] * len(found)
                kept.append(at)
        if len(kept) < len(words):
            words, texts = [words[at] for at in kept], [texts[at] for at in kept]
        return ReadWindow(words, texts, ids, of_word)

    def _tokens(self, words: Sequence[str]) -> dict[str, _Tokens]:
        """By word. The result is whole, whatever another thread forgets meanwhile."""
        found: dict[str, _Tokens] = {}
        missing: dict[str, None] = {}
        for word in words:
            known = self._remembered.get(word)
            if known is None:
                missing[word] = None
            else:
                found[word] = known
        if missing:
            fresh = self._encoded(list(missing))
            found |= fresh
            if len(self._remembered) + len(fresh) > REMEMBERED_WORDS:
                self._remembered.clear()
            short = ((word, ids) for word, ids in fresh.items() if len(word) <= REMEMBERED_CHARS)
            self._remembered.update(islice(short, REMEMBERED_WORDS))
        return found

    def _encoded(self, words: list[str]) -> dict[str, _Tokens]:
        """No special tokens are added: every token belongs to a word."""
        encoding = self._encode(words)
        tokens: list[list[int]] = [[] for _ in words]
        for token, word in zip(encoding.ids, encoding.word_ids, strict=True):
            if word is not None:
                tokens[word].append(token)
        return {word: tuple(ids) for word, ids in zip(words, tokens, strict=True)}

    def _encode(self, words: list[str]) -> Encoding:
        try:
            [encoding] = self._tokenizer.encode_batch([words], is_pretokenized=True, add_special_tokens=False)
        except TypeError as exc:
            raise RefusedInput("a text with lone surrogates can't be tokenised") from exc
        return encoding


def read_tokenizer(path: Path, spec: GlinerSpec) -> WordTokenizer:
    """Files often say that texts are to be cut and padded at 128 tokens: that is undone."""
    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except Exception as exc:  # the library raises bare Exception
        raise ConfigurationError(f"{path} is no tokenizer file ({exc}): fetch the model again") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return WordTokenizer(tokenizer, spec, source=str(path))
