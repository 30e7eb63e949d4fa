"""Cursors, cleaning of requests, and the bodies of the searches."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from search_api.cursor import (
    CursorError,
    ListPosition,
    SearchPosition,
    decode_list_cursor,
    decode_search_cursor,
    encode_cursor,
    fingerprint,
)
from search_api.requests import SearchFilters, SearchRequest, clean_query, clean_text
from search_api.retrieval.queries import (
    TERMS_MAX,
    document_filters,
    fit_words,
    keyword_body,
    language_of,
    telling_words,
    vector_body,
)

NAME = fingerprint("acme", "ada", "query")


@given(st.floats(0, 1), st.uuids())
def test_a_cursor_comes_back_exactly(score: float, doc_id: Any) -> None:
    position = SearchPosition(score=score, doc_id=str(doc_id))
    assert decode_search_cursor(encode_cursor(position, NAME), NAME) == position


@given(st.text(max_size=200))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    with pytest.raises(CursorError):
        decode_search_cursor(text, NAME)


@given(st.integers(0, 200), st.characters(codec="ascii"))
def test_a_bent_cursor_is_refused_or_a_position(place: int, char: str) -> None:
    cursor = encode_cursor(SearchPosition(score=0.25, doc_id="d"), NAME)
    bent = cursor[:place] + char + cursor[place + 1 :]
    try:
        position = decode_search_cursor(bent, NAME)
    except CursorError:
        return
    assert isinstance(position.doc_id, str)


def test_cursors_of_another_list_kind_or_length_are_refused() -> None:
    listed = encode_cursor(ListPosition(after=["a", "b"]), NAME)
    assert decode_list_cursor(listed, NAME, length=2) == ListPosition(after=["a", "b"])
    for read in (
        lambda: decode_list_cursor(listed, NAME, length=3),
        lambda: decode_list_cursor(listed, fingerprint("other"), length=2),
        lambda: decode_search_cursor(listed, NAME),
    ):
        with pytest.raises(CursorError):
            read()


@given(st.text(max_size=80))
def test_a_cleaned_query_is_nfc_one_line_and_stays_as_it_is(text: str) -> None:
    try:
        cleaned = clean_query(text)
    except ValueError:
        return
    assert cleaned == clean_query(cleaned)
    assert unicodedata.is_normalized("NFC", cleaned)
    cleaned.encode()


@given(st.characters(), st.characters(categories=["Cc", "Cs"]))
def test_controls_and_surrogates_are_refused_but_for_white_space(any_char: str, bad: str) -> None:
    for char in (any_char, bad):
        allowed = unicodedata.category(char) not in ("Cc", "Cs") or char in "\t\n\r"
        try:
            clean_text(f"a{char}b")
        except ValueError:
            assert not allowed
        else:
            assert allowed


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "x" * 20_000 + "\0"}, ("query",)),
        ({"query": "a", "filters": {"tags": ["x" * 512 + "\0"]}}, ("filters", "tags", 0)),
        ({"query": "a", "filters": {"doc_type": ["x" * 512 + "\0"]}}, ("filters", "doc_type", 0)),
        ({"query": "a", "filters": {"path_prefix": "x" * 4_096 + "\0"}}, ("filters", "path_prefix")),
        ({"query": "a", "cursor": "x" * 1_025}, ("cursor",)),
    ],
)
def test_a_long_text_is_refused_by_its_length_before_anything_reads_it(
    body: dict[str, Any], field: tuple[str | int, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        SearchRequest.model_validate(body)
    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [(field, "string_too_long")]


def test_dates_are_utc() -> None:
    filters = SearchFilters.model_validate(
        {"updated_from": "2031-04-05", "updated_before": "2031-04-05T09:00+09:00"}
    )
    assert filters.updated_from == datetime(2031, 4, 5, tzinfo=UTC)
    assert filters.updated_before == datetime(2031, 4, 5, tzinfo=UTC)
    assert document_filters(filters)[1] == {
        "range": {"updated_at": {"gte": "2031-04-05T00:00:00+00:00", "lt": "2031-04-05T00:00:00+00:00"}}
    }


def test_a_request_has_no_field_for_the_asker() -> None:
    for field in ("tenant", "tenant_id", "agent", "teams", "roles", "principal"):
        with pytest.raises(ValidationError):
            SearchRequest.model_validate({"query": "a", field: "x"})


def test_short_queries_stay_whole_and_long_ones_are_cut_to_the_engines_limit() -> None:
    assert fit_words("the ferry, 부산에서").text == "the ferry, 부산에서"
    many = fit_words(" ".join(f"w{n}" for n in range(TERMS_MAX + 5)))
    assert (len(many.text.split()), many.left_out) == (TERMS_MAX, 5)
    assert fit_words("crane " * 300).text == "crane"
    long = fit_words("가" * 500 + " rest")
    assert (long.text, long.left_out) == ("가" * TERMS_MAX, 2)
    assert fit_words("Привет мир " * 5).left_out == 0


@given(st.text(max_size=600))
def test_fitting_words_never_raises_and_only_leaves_out(text: str) -> None:
    assert set(fit_words(text).text) <= set(text) | {" "}


def test_words_that_say_nothing_are_asked_for_only_alone() -> None:
    assert telling_words("Who owns the Tide?") == ["owns", "Tide?"]
    assert telling_words("Who is it?") == ["Who", "is", "it?"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tide bridge rota", "en"),
        ("조수 다리 당번", "ko"),
        (unicodedata.normalize("NFD", "조수 다리 당번"), "ko"),
        ("Obsidian Sync 설정 방법", "ko"),
        ("дежурство по мосту", "other"),
        ("INC-2047", None),
        ("Mirela Voss", None),
        ("1 2 3 4", None),
        ("", None),
    ],
)
def test_a_querys_language_is_told_from_three_words_on(query: str, expected: str | None) -> None:
    assert language_of(query.split()) == expected


def test_the_searches_have_the_same_depth_and_no_query_language() -> None:
    keyword = keyword_body("tide AND ledger", SearchFilters(), size=100)
    vector = vector_body([0.0], SearchFilters(), size=100, doc_ids=None)
    assert keyword["size"] == vector["size"] == vector["query"]["knn"]["vector"]["k"] == 100
    words = keyword["query"]["bool"]["must"][0]["bool"]["should"]
    assert [list(word) for word in words] == [["multi_match"], ["multi_match"]]
    assert [word["multi_match"]["query"] for word in words] == ["tide", "ledger"]
    of_leg = {"bool": {"must_not": [{"term": {"doc_type": "session_summary"}}]}}
    assert keyword["query"]["bool"]["filter"] == [{"term": {"deleted": False}}, of_leg]
    assert vector["query"]["knn"]["vector"]["filter"] == {"bool": {"filter": [of_leg]}}
