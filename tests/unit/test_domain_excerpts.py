from __future__ import annotations

import unicodedata

import pytest

from indexers.domain.excerpts import excerpt, light_stem, query_terms

LINE = "시험선 가람호는 부산에서 출항했다."
NOTE = "\n".join([*(f"filler line {n}" for n in range(40)), LINE, *(f"other line {n}" for n in range(40))])


@pytest.mark.parametrize("query", ["부산", "가람호", "출항", "부산에서", "가람호가 출항"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_c16_the_excerpt_holds_the_line_with_the_particles(query: str, form: str) -> None:
    text = unicodedata.normalize(form, NOTE)  # type: ignore[arg-type]
    shown = excerpt(text, query, max_chars=200)
    assert unicodedata.normalize(form, LINE) in shown.text  # type: ignore[arg-type]
    assert shown.text == text[shown.start : shown.end]
    assert len(shown.text) <= 200
    assert not shown.text.startswith("filler line 0")


@pytest.mark.parametrize(
    ("query", "matched"),
    [
        ("ora-01555", ("ora-01555",)),
        ("INC-2041", ()),
        ("payment_retry", ("payment_retry",)),
        ("docking ferries", ("docking", "ferries")),
        ("STRASSE", ("strasse",)),
        ("dockyard", ()),
        ("01555", ("01555",)),
    ],
)
def test_codes_stems_and_folding(query: str, matched: tuple[str, ...]) -> None:
    line = "The ferry docked in Hauptstraße, straße: ORA-01555 in payment_retry."
    text = f"{'x ' * 100}\n\n{line}\n\n{'y ' * 100}"
    assert excerpt(text, query, max_chars=80).matched == matched


def test_the_paragraph_with_most_terms_wins() -> None:
    text = "crane alone here.\n\nnothing.\n\nthe crane broke its rope.\n\nrope."
    shown = excerpt(text, "crane rope", max_chars=40)
    assert (shown.text, shown.matched) == ("the crane broke its rope.", ("crane", "rope"))


def test_nothing_matches_shows_the_head() -> None:
    assert excerpt("The head of it.\n\nTail.", "absent", max_chars=10).text == "The head"
    assert excerpt("", "absent", max_chars=10).text == ""


def test_terms_and_stems() -> None:
    assert query_terms("The Cranes, 부산에서 ORA-01555 the") == ("the", "cranes", "부산", "ora-01555")
    assert [light_stem(word) for word in ("docked", "docking", "docks", "dock", "stopped", "bus")] == [
        "dock", "dock", "dock", "dock", "stop", "bus",
    ]  # fmt: skip


FRONTED = "---\ntitle: Crane\ntags: [rope, buoy]\n---\n# Crane rope\n\nThe crane lifts.\n\n## Rope care\n\nOil it.\n"
BODY = FRONTED.index("# Crane rope")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("crane", "The crane lifts."),
        ("rope", "## Rope care\n\nOil it."),
        ("crane rope", "The crane lifts.\n\n## Rope care\n\nOil it."),
        ("buoy", "tags: [rope, buoy]"),
        ("absent", "The crane lifts.\n\n## Rope care\n\nOil it."),
    ],
)
def test_frontmatter_and_bare_headings_are_not_shown_while_there_is_a_paragraph(
    query: str, shown: str
) -> None:
    found = excerpt(FRONTED, query, max_chars=60, body_start=BODY)
    assert shown in found.text
    assert "# Crane rope" not in found.text
    assert (FRONTED[found.start : found.end], len(found.text) <= 60) == (found.text, True)


@pytest.mark.parametrize("max_chars", [1, 5, 12, 30])
@pytest.mark.parametrize("text", ["# Only", "# Only\n", "# Only\n\n# Other\n", "# Only\n\n" + "word " * 30])
def test_a_note_of_headings_shows_one_within_its_limit(text: str, max_chars: int) -> None:
    for query in ("only", "absent"):
        found = excerpt(text, query, max_chars=max_chars)
        assert found.text == text[found.start : found.end]
        assert 0 < len(found.text) <= max_chars


def test_the_word_y_ends_the_search() -> None:
    assert excerpt("hello yes y ok", "y", max_chars=100).matched == ("y",)
    assert excerpt("hello yes", "y", max_chars=100).matched == ()
