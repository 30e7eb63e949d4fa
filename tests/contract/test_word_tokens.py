"""What the adapters remember of words: tokens are the same as those of a whole row encoded anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from indexers.domain.entities.windows import split_words
from indexers.extractors import tokens
from indexers.extractors.factory import default_model_dir
from indexers.extractors.spec import TOKENIZER_FILE, read_spec
from indexers.extractors.tokens import ReadWindow, WordTokenizer, read_tokenizer

FILE = default_model_dir() / TOKENIZER_FILE
LIBRARY = Tokenizer.from_file(str(FILE))
LIBRARY.no_truncation()
LIBRARY.no_padding()
WORDS = st.sampled_from(
    ["Alice", "alice", "INC-2041", "checkout-api", "서울에서", "😀", "\u200b", "\u200d", ".", "x" * 60]
)
TEXTS = st.lists(WORDS | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)).map(
    " ".join
)


def fresh() -> WordTokenizer:
    return read_tokenizer(FILE, read_spec(default_model_dir()))


#: One for all examples, so that later ones find what earlier ones left.
REMEMBERING = fresh()


def by_library(window: str) -> ReadWindow:
    """The row at once; words that have no token left out."""
    words = split_words(window)
    texts = [window[start:end] for start, end in words]
    row = LIBRARY.encode(texts, is_pretokenized=True, add_special_tokens=False)
    kept = sorted({word for word in row.word_ids if word is not None})
    return ReadWindow(
        [words[i] for i in kept],
        [texts[i] for i in kept],
        row.ids,
        [kept.index(word) for word in row.word_ids if word is not None],
    )


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(TEXTS, max_size=4))
def test_a_window_reads_as_if_nothing_were_remembered(texts: list[str]) -> None:
    words = [word for text in texts for word in text.split()]
    assert REMEMBERING.read(texts) == [by_library(text) for text in texts]
    assert REMEMBERING.counts(words) == [
        len(LIBRARY.encode([word], is_pretokenized=True, add_special_tokens=False).ids) for word in words
    ]


def test_what_is_remembered_is_bounded_and_forgetting_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "REMEMBERED_WORDS", 50)
    tokenizer = fresh()
    texts = [" ".join(f"word{n} {'y' * n}" for n in range(at, at + 40)) for at in range(0, 200, 40)]
    expected = [by_library(text) for text in texts]
    assert [tokenizer.read([text])[0] for text in texts] == expected
    remembered = tokenizer._remembered
    assert 0 < len(remembered) <= 50
    assert max(map(len, remembered)) <= tokens.REMEMBERED_CHARS
    with ThreadPoolExecutor(4) as pool:
        rounds = [pool.submit(tokenizer.read, texts[n:] + texts[:n]) for n in range(5)] * 3
        assert [r.result() for r in rounds] == [expected[n:] + expected[:n] for n in range(5)] * 3
