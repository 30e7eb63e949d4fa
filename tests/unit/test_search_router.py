"""What a query says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.entities.asked import KEYS_MAX, asked_keys
from indexers.domain.entities.names import name_key
from search_api.retrieval.router import Recognised, names_in, route
from search_api.retrieval.time_ranges import time_ranges

#: A Wednesday.
NOW = datetime(2031, 4, 9, 15, tzinfo=UTC)


def test_tags_times_quoted_titles_paths_and_ids_are_recognised() -> None:
    doc_id = "c8f78094-e24e-5c21-9262-35a0a823062f"
    found = route(f'what of #audit in "Copper Ledger" or ops/run.md {doc_id} last week (#ops/payouts)', NOW)
    assert found.recognised == (
        Recognised(kind="tag", said="audit", effect="boost"),
        Recognised(kind="tag", said="ops/payouts", effect="boost"),
        Recognised(kind="time", said="last week", effect="boost"),
        Recognised(kind="quoted", said="Copper Ledger", effect="exact"),
        Recognised(kind="path", said="ops/run.md", effect="exact"),
        Recognised(kind="id", said=doc_id, effect="exact"),
    )
    assert (found.quoted, found.paths, found.doc_ids) == (("Copper Ledger",), ("ops/run.md",), (doc_id,))


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("/ops/회의록.md", ("ops/회의록.md",)),
        ("My notes of May.md", ("My notes of May.md", "May.md")),
        ('see "ops/a b" now', ("ops/a b", "ops/a b.md", "ops/a", "ops/a.md")),
        ("either/or", ("either/or", "either/or.md")),
        ("issue #12 of v1.2", ()),
    ],
)
def test_paths_with_and_without_suffix(query: str, paths: tuple[str, ...]) -> None:
    assert route(query, NOW).paths == paths


def test_words_of_the_query_are_tags_categories_and_agents() -> None:
    found = route("결제팀은 왜 Release-Notes를 바꿨나", NOW)
    assert [found.says(p) for p in ("결제팀", "release-notes", "team/결제팀", "notes", "release", "왜곡")] == [
        True, True, True, True, True, False,
    ]  # fmt: skip
    assert not found.says("#!")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2031-04-09", "2031-04-10"),
        ("어제", "2031-04-08", "2031-04-09"),
        ("그저께", "2031-04-07", "2031-04-08"),
        ("what happened last week?", "2031-03-31", "2031-04-07"),
        ("지난주에", "2031-03-31", "2031-04-07"),
        ("지난 달 회의", "2031-03-01", "2031-04-01"),
        ("this month", "2031-04-01", "2031-05-01"),
        ("작년", "2030-01-01", "2031-01-01"),
        ("3 days ago", "2031-04-06", "2031-04-07"),
        ("2주 전", "2031-03-23", "2031-03-30"),
        ("the last 3 days", "2031-04-07", "2031-04-10"),
        ("최근 2주", "2031-03-27", "2031-04-10"),
        ("2030-02", "2030-02-01", "2030-03-01"),
        ("on 2030-02-28.", "2030-02-28", "2030-03-01"),
        ("2030년 12월 31일", "2030-12-31", "2031-01-01"),
        ("12월에", "2030-12-01", "2031-01-01"),
        ("March 5, 2030", "2030-03-05", "2030-03-06"),
        ("5th March 2030", "2030-03-05", "2030-03-06"),
        ("Sept 2030", "2030-09-01", "2030-10-01"),
        ("in May", "2030-05-01", "2030-06-01"),
        ("on March 5", "2031-03-05", "2031-03-06"),
        ("Q4 2030", "2030-10-01", "2031-01-01"),
        ("since 2 april", None, None),
        ("in 2029", "2029-01-01", "2030-01-01"),
        ("2029년", "2029-01-01", "2030-01-01"),
        ("2030-02-31", None, None),
        ("may I march on", None, None),
        ("build 2031-04-05-3", None, None),
        ("2030, 2029-01, 2028-01, 2027-01, 2026-01", None, None),
    ],
)
def test_times_in_english_and_korean(text: str, start: str | None, end: str | None) -> None:
    found = [(t.start.date().isoformat(), t.end.date().isoformat()) for t in time_ranges(text, NOW)]
    assert found == ([] if start is None else [(start, end)])


@given(st.text(max_size=300))
def test_any_query_has_a_route_and_names(query: str) -> None:
    assert route(query, NOW) == route(query, NOW)
    names = names_in(query)
    assert len(names.entity_keys) <= KEYS_MAX


@given(st.text(alphabet="0123456789 년월일전주qQ-agodysMarch", max_size=40))
def test_a_time_begins_before_it_ends(text: str) -> None:
    assert all(time.start < time.end for time in time_ranges(text, NOW))


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Copper Guild", "crew"),
        ("Dr. Ada Novak", "person"),
        ("Acme Ltd.", "organization"),
        ("ORA-01555", "code"),
        ("v1.2.3", "version"),
        ("INC-2041", "incident"),
        ("node.js", "technology"),
        ("R&D", "team"),
        ("C++", "technology"),
        ("O'Reilly Media", "organization"),
        ("checkout-api", "service"),
        ("the Atlas", "system"),
        ("김민수", "person"),
        ("결제팀", "team"),
        ("시험선 가람호", "system"),
        ("payment_retry", "code"),
        ("a@b.co", "email"),
    ],
)
def test_names_are_asked_for_by_their_keys(name: str, label: str) -> None:
    key = name_key(name, label)
    for question in (f"who is {name}?", f"when did {name} fail", f"tell me of {name}."):
        assert key in asked_keys(question)
    if name >= "가":
        assert key in asked_keys(f"{name}에서 무슨 일이")
    elif label not in ("code", "version", "email"):
        assert key in asked_keys(f"what is {name}'s job")


def test_names_of_several_words_come_first_and_stop_words_are_none() -> None:
    assert asked_keys("what is the Copper Guild of it") == ("copper guild", "copper", "guild")
    names = names_in("what is the place of the Copper Guild")
    assert "copper guild" in names.title_keys
    assert "what" not in names.title_keys
