"""Content terms: what makes two notes neighbours."""

from __future__ import annotations

import time

import pytest

from indexers.domain.terms import content_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param("The year is what it was, and so on: 12 of 7.", (), id="only common words and numbers"),
        pytest.param("We painted it for Ada in Bristol", ("bristol", "ada", "painted"), id="names first"),
        pytest.param("Painted pumps", ("painted", "pump"), id="a capital at the beginning is no name"),
        pytest.param("pumps and a pump", ("pump",), id="plural"),
        pytest.param("branches boxes ferries glasses", ("branch", "ferry", "glass", "box"), id="plurals"),
        pytest.param("bus gas basis class", ("basis", "class", "bus", "gas"), id="no plurals"),
        pytest.param(
            "dredger ORA-01555 payment_retry", ("payment_retry", "ora-01555", "dredger"), id="codes"
        ),
        pytest.param("부산에서 출항했다. 부산은 출항합니다", ("부산", "출항"), id="Korean"),
        pytest.param("하는 한다 점검 완료됨", ("점검", "완료"), id="an ending alone is no term"),
        pytest.param("Wow, thanks! Talk to you tomorrow, I didn't think so.", (), id="small talk"),
    ],
)
def test_terms_of_a_text(text: str, expected: tuple[str, ...]) -> None:
    assert content_terms([text]) == expected


def test_words_of_the_title_count_twice_and_the_rest_goes() -> None:
    text = ["dredger anchor ballast"]
    assert content_terms(text, title="Ballast of the Lantern") == ("ballast", "dredger", "anchor")
    assert content_terms(text, title="Ballast", limit=1) == ("ballast",)


def test_texts_are_blocks_whose_beginnings_are_no_names() -> None:
    assert content_terms(["Dredger", "Anchor", "the anchors"]) == ("anchor", "dredger")


@pytest.mark.parametrize("text", ["a-" * 100_000, ' ("' * 70_000, "Ab " * 70_000, "한다" * 100_000])
def test_long_texts_take_no_time(text: str) -> None:
    started = time.process_time()
    content_terms([text])
    assert time.process_time() - started < 2
