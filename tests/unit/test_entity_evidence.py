from __future__ import annotations

import unicodedata

import pytest

from indexers.domain.entities.evidence import (
    NAME_MAX_CHARS,
    REASONS,
    Reason,
    find_quote,
    objection,
    tidy_span,
)
from indexers.domain.entities.masking import readings

TEXT = "---\ntitle: Dana\nowner: Tally\n---\n[[Dana]] Cole\nmet **Ben**.\n\nPaula.\n- one\n- two"
BODY = TEXT.index("[[")


def at(part: str) -> tuple[str, int, int]:
    start = TEXT.index(part)
    return part, start, start + len(part)


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (at("Cole"), None),
        (at("Cole\nmet"), None),
        (("Dana", 11, 15), None),
        (("Cole", 0, 4), "text_differs"),
        (("Cole", -4, 0), "out_of_bounds"),
        (("Cole", 5, 4), "out_of_bounds"),
        (("Cole", len(TEXT) - 2, len(TEXT) + 2), "out_of_bounds"),
        (("", 3, 3), "empty_name"),
        (("**", BODY + 18, BODY + 20), "empty_name"),
        (at("Dana]] Cole"), "markup_inside"),
        (at("owner"), "not_readable"),
        (at("Tally"), "not_readable"),
        (at("met **Ben**.\n\nPaula"), "markup_inside"),
        (at("Paula.\n- one"), "markup_inside"),
    ],
)
def test_a_claim_stands_in_the_text_or_is_refused(claim: tuple[str, int, int], reason: Reason | None) -> None:
    prose = readings(TEXT, body_start=BODY).prose
    assert objection(TEXT, *claim, reading=prose, body_start=BODY) == reason


def test_a_name_does_not_run_into_the_next_block() -> None:
    text = "# Dana\nCole left\n\nPaula"
    prose = readings(text).prose
    assert objection(text, "Dana\nCole", 2, 11, reading=prose) == "crosses_blocks"
    assert objection(text, "left\n\nPaula", 12, 23, reading=prose) == "crosses_blocks"
    assert objection(text, "left\n\nPaula", 12, 23) is None


def test_a_name_has_a_length() -> None:
    text = "x" * (NAME_MAX_CHARS + 1)
    assert objection(text, text, 0, len(text)) == "too_long"
    assert objection(text, text[1:], 1, len(text)) is None


def test_nfd_is_not_its_nfc() -> None:
    text = unicodedata.normalize("NFD", "한소라")
    assert objection(text, "한소라", 0, 3) == "text_differs"


def test_every_reason_is_listed_once() -> None:
    assert len(set(REASONS)) == len(REASONS) == 7


def test_marks_at_the_edges_of_a_span_are_no_part_of_it() -> None:
    text = "see [[Dana Cole]] **Ben** now"
    prose = readings(text).prose
    assert tidy_span(text, prose, 4, 17) == (6, 15)
    assert tidy_span(text, prose, 17, 25) == (20, 23)
    assert tidy_span(text, prose, 15, 18) == (18, 18)


@pytest.mark.parametrize(
    ("text", "quote", "place"),
    [
        ("Dana leads Tally.", "Dana leads", (0, 10)),
        ("so Dana\n  leads\tTally.", "Dana leads Tally", (3, 21)),
        ("Dana leads", "  Dana   leads ", (0, 10)),
        ("Dana leads", "dana leads", None),
        ("Dana leads", "Dana led", None),
        ("Dana leads", " ", None),
        ("aaA", "aA", (1, 3)),
        ("STRASSE straße", "straße", (8, 14)),
        (unicodedata.normalize("NFD", "어제 배지우가 고쳤다"), "배지우가  고쳤다", (5, 21)),
        ("어제 배지우가 고쳤다", unicodedata.normalize("NFD", "배지우가 고쳤다"), (3, 11)),
        (unicodedata.normalize("NFD", "café"), "cafe", None),
        ("x" * 2_000, "x" * 1_001, None),
    ],
)
def test_a_quote_is_found_whatever_its_blanks_and_form(
    text: str, quote: str, place: tuple[int, int] | None
) -> None:
    assert find_quote(text, quote) == place
