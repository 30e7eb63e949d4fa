from __future__ import annotations

import time
import unicodedata
from itertools import pairwise
from typing import Literal

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.domain.entities.evidence import NAME_MAX_CHARS, find_quote, objection, tidy_span
from indexers.domain.entities.labels import PATTERN_LABELS
from indexers.domain.entities.masking import readings
from indexers.domain.entities.recognisers import recognise
from indexers.domain.entities.sentences import sentence_around

PIECES = (
    *(
        "\n",
        "\n\n",
        " ",
        "\t",
        "\r\n",
        ". ",
        "! ",
        "。",
        "e.g. ",
        "\u0301",
        "\u200d",
        "👩\u200d👦",
        "🇰🇷",
        "한",
        "에서",
        "ᄒ",
        "ᅡ",
    ),
    *(
        "# ",
        "- ",
        "- [x] ",
        "> ",
        "1. ",
        "|",
        "| --- |\n",
        "```\n",
        "~~~\n",
        "`",
        "``",
        "**",
        "_",
        "~~",
        "$",
        "$$",
        "%%",
    ),
    *(
        "<!--",
        "-->",
        "<b>",
        "[[",
        "]]",
        "![[",
        "|x]]",
        "[a](",
        ")",
        "[",
        "]",
        "](",
        "[^1]",
        "[r]: x",
        "#tag",
        "^id",
        "\\",
    ),
    *(
        "---\n",
        "title: x\n",
        "https://a.example/",
        "x@y.example",
        "/etc/",
        "a/",
        "b.md",
        "C:\\",
        "::",
        ":",
        "10.0.0.1",
    ),
    *(
        "INC-2041",
        "PAY-113",
        "QX-4103B",
        "ERR_A",
        "E1234",
        "HTTP 503",
        "v1.2",
        "1.2.3",
        "-rc.1",
        "fe80::1",
        "db-1:5432",
    ),
    *(
        "a",
        "A",
        "1",
        "-",
        "/",
        ".",
        "@",
        "word",
        "Dana Cole",
        "é",
        "(",
        "{",
        "}",
        "+",
        "%",
        "~/",
        "../",
        "user:pw@",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


@st.composite
def spans(draw: st.DrawFn) -> tuple[str, int, int]:
    text = draw(TEXTS)
    start = draw(st.integers(0, len(text)))
    return text, start, draw(st.integers(start, len(text)))


@given(TEXTS, st.integers(0, 60))
@settings(max_examples=300)
def test_masks_keep_length_and_replace_no_name_by_another(text: str, body_start: int) -> None:
    read = readings(text, body_start=min(body_start, len(text)))
    assert len(read.shown) == len(read.prose) == len(text)
    for source, shown, prose in zip(text, read.shown, read.prose, strict=True):
        assert shown in (source, " ")
        assert (
            prose in (source, " ")
            or (source, prose) == ("|", ",")
            or (prose == "." and source in "#-*+>|123456789")
        )
        assert not source.isspace() or prose == shown == source


@given(TEXTS)
@settings(max_examples=300)
def test_recognised_spans_are_evident_sorted_and_apart(text: str) -> None:
    found = recognise(text).spans
    assert all(first.end <= second.start for first, second in pairwise(found))
    for start, end, label in found:
        surface = text[start:end]
        assert objection(text, surface, start, end) is None
        assert label in PATTERN_LABELS
        assert surface == surface.strip()
        assert unicodedata.combining(text[end : end + 1] or " ") == 0 or label in ("url", "path")


@given(spans(), st.integers(1, 60))
@settings(max_examples=400)
def test_a_sentence_holds_its_span_and_cuts_no_grapheme(place: tuple[str, int, int], limit: int) -> None:
    text, start, end = place
    left, right = sentence_around(text, start, end, limit=limit)
    assert 0 <= left <= start <= end <= right <= len(text)
    assert right - left <= max(limit, end - start)
    bounds = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    assert left in bounds | {start}
    assert right in bounds | {end}


@given(spans())
@settings(max_examples=300)
def test_what_passes_the_gate_stands_there_unmasked(place: tuple[str, int, int]) -> None:
    text, start, end = place
    prose = readings(text).prose
    start, end = tidy_span(text, prose, start, end)
    surface = text[start:end]
    if objection(text, surface, start, end, reading=prose) is None:
        assert prose[start:end] == surface == surface.strip()
        assert 0 < len(surface) <= NAME_MAX_CHARS
    assert objection(text, surface + "x", start, end) == "text_differs"


@given(spans(), st.sampled_from(["NFC", "NFD"]))
@settings(max_examples=300)
def test_a_quote_of_the_text_is_found_as_said(
    place: tuple[str, int, int], form: Literal["NFC", "NFD"]
) -> None:
    text, start, end = place
    quote = " \n".join(unicodedata.normalize(form, text[start:end]).split(" "))
    found = find_quote(text, quote)
    said = " ".join(unicodedata.normalize("NFC", quote).split())
    if found is not None:
        assert " ".join(unicodedata.normalize("NFC", text[slice(*found)]).split()) == said
    elif text.isascii():
        assert not said


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join))
@settings(max_examples=40, deadline=None)
def test_no_text_makes_masks_or_rules_slow(piece: str) -> None:
    text = (piece * (40_000 // len(piece) + 1))[:40_000]
    begun = time.process_time()
    read = readings(text)
    recognise(text)
    recognise(read.shown)
    assert time.process_time() - begun < 3
