"""Cosines of turns, mixed with those of the turns around them."""

from __future__ import annotations

from typing import Any

import pytest

from search_api.retrieval.candidates import Candidate
from search_api.retrieval.smoothing import smooth
from tests.ranked import by_vector, by_words, ranking

RULES: dict[str, Any] = {"turn_previous": 0.5, "turn_next": 0.5}


def turn(doc_id: str, position: int, cosine: float, session: str = "monday", agent: str = "ada") -> Candidate:
    return by_vector(doc_id, cosine, session=session, position=position, agent_id=agent, scope="shared")


def raw(found: list[Candidate]) -> dict[str, float]:
    return {c.doc_id: c.evidence[0].raw for c in found}


def test_a_turn_counts_with_the_turns_around_it() -> None:
    found = smooth(
        [turn("a", 1, 0.9), turn("b", 2, 0.8), turn("c", 3, 0.7), turn("x", 9, 0.6)], ranking(**RULES)
    )
    assert raw(found) == {
        "a": pytest.approx((0.9 + 0.3 + 0.4) / 2),
        "b": pytest.approx((0.8 + 0.45 + 0.35) / 2),
        "c": pytest.approx((0.7 + 0.4 + 0.3) / 2),
        "x": pytest.approx((0.6 + 0.3 + 0.3) / 2),
    }
    assert found[1].evidence[0].turns == (0.8, 0.9, 0.7)


def test_sessions_of_two_agents_and_notes_without_one_are_left_alone() -> None:
    others = [turn("a", 1, 0.9), turn("b", 2, 0.8, agent="ben"), turn("c", 2, 0.8, session="friday")]
    plain = [by_vector("n", 0.95), by_words("w", 7.0)]
    found = smooth([*others, *plain], ranking(**RULES))
    assert raw(found) == {
        "a": pytest.approx((0.9 + 0.8) / 2),
        "b": pytest.approx((0.8 + 0.8) / 2),
        "c": pytest.approx((0.8 + 0.8) / 2),
        "n": 0.95,
        "w": 7.0,
    }
    assert smooth(plain, ranking(**RULES)) == plain


def test_the_best_chunk_speaks_for_a_turn() -> None:
    two = by_vector("a", 0.7, ordinal=1, session="monday", position=1, agent_id="ada", scope="shared")
    found = smooth([turn("a", 1, 0.9), two, turn("b", 2, 0.8)], ranking(**RULES))
    assert [c.evidence[0].turns for c in found] == [(0.9, 0.7, 0.8), (0.7, 0.7, 0.8), (0.8, 0.9, 0.7)]
