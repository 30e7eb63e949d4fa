from __future__ import annotations

import pytest

from indexers.domain.entities.sentences import block_around, sentence_around, sentence_text


def around(text: str, name: str, **options: int) -> str:
    start = text.index(name)
    return sentence_text(text, *sentence_around(text, start, start + len(name), **options))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("First. Then NAME came! Last?", "Then NAME came!"),
        ("Use it, e.g. NAME, in v1.2. Then stop.", "Use it, e.g. NAME, in v1.2."),
        ("It was Dr. NAME of St. Mary vs. J. Smith. End.", "It was Dr. NAME of St. Mary vs. J. Smith."),
        ("Ask NAME Inc. for more. End.", "Ask NAME Inc. for more."),
        ("See https://a.example/x.html?y=1 of NAME. End.", "See https://a.example/x.html?y=1 of NAME."),
        ('He said "NAME left." Then none.', 'He said "NAME left."'),
        ("Wait... NAME came.", "NAME came."),
        ("어제 장애가 났다. NAME이 고쳤다. 끝.", "NAME이 고쳤다."),
        ("昨日。NAMEが直した。終わり。", "NAMEが直した。"),
        ("One\nline of NAME\nand more.\n\nNext.", "One line of NAME and more."),
        ("# About NAME\nText.", "About NAME"),
        ("Intro:\n- first\n- NAME is\n  the second\n- third", "NAME is the second"),
        ("1. [x] NAME done. More.", "NAME done."),
        ("- [x] NAME done", "NAME done"),
        ("| a | b |\n|---|---|\n| NAME | 2 |\n| c | d |", "| NAME | 2 |"),
        ("> quoted NAME\n> goes on\n\nother", "quoted NAME > goes on"),
        ("Title\r\n\r\nThe NAME.\r\nMore\r\n\r\nx", "The NAME."),
        ("```\nNAME = 1\n```\nx", "NAME = 1"),
        ("NAME", "NAME"),
    ],
)
def test_the_sentence_or_item_or_row_around_a_name(text: str, sentence: str) -> None:
    assert around(text, "NAME") == sentence


def test_a_line_of_frontmatter_stands_alone() -> None:
    text = "---\ntitle: NAME\ntags: [a]\n---\nBody NAME2 here"
    assert around(text, "NAME", body_start=text.index("Body")) == "title: NAME"
    assert around(text, "NAME2", body_start=text.index("Body")) == "Body NAME2 here"


def test_a_long_sentence_is_shown_around_the_name_between_words() -> None:
    text = "word " * 200 + "NAME " + "other " * 200 + "."
    shown = around(text, "NAME", limit=60)
    assert len(shown) <= 60
    assert set(shown.split()) == {"word", "NAME", "other"}
    assert around("x" * 900 + "NAME" + "y" * 900, "NAME", limit=50) == "x" * 23 + "NAME" + "y" * 23


def test_no_grapheme_is_cut() -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f466"
    text = family * 30 + "NAME" + "e\u0301" * 60
    start, end = sentence_around(text, text.index("NAME"), text.index("NAME") + 4, limit=60)
    assert (text[start:].startswith(family), text[end - 1], end - start <= 60) == (True, "\u0301", True)


def test_a_name_over_the_limit_stays_whole() -> None:
    text = "x" * 400
    assert sentence_around(text, 0, 400, limit=300) == (0, 400)


def test_a_block_ends_where_the_next_begins() -> None:
    text = "para one\nstill\n\npara two"
    assert text[slice(*block_around(text, 3, 5))].strip() == "para one\nstill"
