from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from indexers.domain.chunking import Chunk, chunk, chunk_hash, chunker_version, embedding_text
from indexers.domain.markdown import ParsedNote, parse

TOKENIZER = Path(__file__).parents[2] / "models/e5-small-enko/tokenizer.json"


class Words:
    """A token is a word of at most eight characters."""

    tokenizer_id = "words-8"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(re.findall(r"\S{1,8}", text)) for text in texts]


class Shipped:
    """The tokenizer of the shipped embedder."""

    tokenizer_id = "e5-small-enko"

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [
            len(found.ids) for found in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]


def read(text: str, path: str = "log.md") -> ParsedNote:
    return parse(text, path=path, frontmatter_max_bytes=65_536)


def texts(text: str, max_tokens: int = 16) -> list[tuple[tuple[str, ...], str]]:
    return [
        (c.heading_path, text[c.start : c.end])
        for c in chunk(read(text), counter=Words(), max_tokens=max_tokens)
    ]


def test_c05_three_sections_then_one() -> None:
    full = "## A\nalder here\n\n## B\nbirch here\n\n## C\ncedar here\n"
    assert chunk(read(full), counter=Words(), max_tokens=64) == [
        Chunk(ordinal=0, start=0, end=15, heading_path=("A",)),
        Chunk(ordinal=1, start=17, end=32, heading_path=("B",)),
        Chunk(ordinal=2, start=34, end=49, heading_path=("C",)),
    ]
    assert texts("## A\nalder here\n", 64) == [(("A",), "## A\nalder here")]


@pytest.mark.parametrize(
    "text", ["", " \n\n\t", "\ufeff\n", "---\ntitle: Lantern\n---\n", "---\ntitle: x\n---\n\n \n"]
)
def test_c06_empty_notes_have_no_chunk(text: str) -> None:
    assert chunk(read(text), counter=Words(), max_tokens=64) == []


def test_a_heading_starts_its_chunk_and_goes_with_its_text() -> None:
    text = "# Top\n\n## Sub\n\n" + "one two three four five six seven. " * 4 + "\n\n# Next\n\nend\n"
    first, *middle, last = texts(text)
    assert first[0] == ("Top", "Sub")
    assert first[1].startswith("# Top\n\n## Sub\n\none two")
    assert {(path, said.split()[0]) for path, said in middle} == {(("Top", "Sub"), "one")}
    assert last == (("Next",), "# Next\n\nend")


def test_small_blocks_are_packed_and_large_ones_cut_at_sentences() -> None:
    assert texts("a b c\n\nd e f\n\n- g\n- h\n", 16) == [((), "a b c\n\nd e f\n\n- g\n- h")]
    cut = texts(
        "One two three four five. Six seven eight nine ten. Eleven twelve more more more. The end it is.", 16
    )
    assert [said[-1] for _, said in cut] == ["."] * len(cut)


def test_frontmatter_is_not_chunked_and_its_title_is_context() -> None:
    assert texts("---\ntitle: Log\n---\nbody\n") == [(("Log",), "body")]


def test_long_heading_paths_leave_room() -> None:
    text = f"# {'long ' * 30}\n\n## B\n\ntext\n"
    assert all(Words().count_tokens([embedding_text(p, t)])[0] <= 16 for p, t in texts(text))


def test_embedding_text_says_its_heading_once_and_no_file_name() -> None:
    assert embedding_text(("Top", "Sub"), "## Sub\n\nx") == "Top\n## Sub\n\nx"
    assert embedding_text(("Top", "Sub"), "more") == "Top > Sub\nmore"
    assert embedding_text((), "more") == "more"
    hashes = [
        [
            chunk_hash(embedding_text(c.heading_path, note.text[c.start : c.end]))
            for c in chunk(note, counter=Words(), max_tokens=16)
        ]
        for note in (read("# A\n\nx", "one.md"), read("# A\n\nx", "b/two.md"))
    ]
    assert hashes[0] == hashes[1]


def test_version_names_all_that_decides_the_cuts() -> None:
    assert chunker_version(Words(), 256) == "headings-1/words-8/256"


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"gauge {number:06d} reads low." for number in range(21_000)),
        "부산에서출항했다" * 20_000,
        "a" * 500_000,
        "".join(f"## h{number}\n\ntext {number}.\n\n" for number in range(3_000)),
    ],
    ids=["c07_one_paragraph", "no_spaces", "one_word", "many_sections"],
)
def test_c07_half_a_megabyte_takes_seconds_with_the_shipped_tokenizer(text: str) -> None:
    counter, note = Shipped(), read(text)
    started = time.monotonic()
    chunks = chunk(note, counter=counter, max_tokens=256)
    assert time.monotonic() - started < 15
    counts = counter.count_tokens([embedding_text(c.heading_path, text[c.start : c.end]) for c in chunks])
    assert max(counts) <= 256
    said = "".join(text[c.start : c.end] for c in chunks)
    assert "".join(said.split()) == "".join(text.split())
