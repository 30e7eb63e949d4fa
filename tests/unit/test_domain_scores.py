from __future__ import annotations

import math

import pytest

from indexers.domain.scores import (
    Fused,
    Normalised,
    normalise_keyword,
    normalise_place,
    normalise_vector,
    shares,
    weighted_sum,
)

#: Case C18's one constant: a hit alone in its list, or among equals, at or over the floor.
ALONE = 1.0
WEIGHTS = shares({"documents": 0.4, "sessions": 0.3, "entities": 0.3})


def test_c18_single_hit_empty_list_and_all_equal() -> None:
    documents = normalise_keyword({"d1": 7.2}, floor=2.0)
    sessions = normalise_keyword({}, floor=2.0)
    entities = normalise_keyword({"e1": 0.41, "e2": 0.41, "e3": 0.41}, floor=0.3)
    assert documents == Normalised(scores={"d1": ALONE})
    assert sessions == Normalised(scores={})
    assert entities == Normalised(scores={"e1": ALONE, "e2": ALONE, "e3": ALONE})
    lists = {"documents": documents.scores, "sessions": sessions.scores, "entities": entities.scores}
    assert [(hit.doc_id, round(hit.score, 12)) for hit in weighted_sum(lists, WEIGHTS)] == [
        ("d1", round(0.4 * ALONE, 12)),
        ("e1", round(0.3 * ALONE, 12)),
        ("e2", round(0.3 * ALONE, 12)),
        ("e3", round(0.3 * ALONE, 12)),
    ]


def test_c18_a_hit_keeps_its_score_when_a_filter_leaves_it_alone() -> None:
    among, alone = (
        normalise_keyword({"a": 9.0, "b": 3.0}, floor=2.0),
        normalise_keyword({"a": 9.0}, floor=2.0),
    )
    assert among.scores["a"] == alone.scores["a"] == ALONE
    assert normalise_keyword({"a": 0.5, "b": 0.5}, floor=2.0).scores == {"a": 0.25, "b": 0.25}
    assert normalise_keyword({"a": 0.003}, floor=1.0).scores == {"a": 0.003}


def test_c18_a_weak_hit_is_not_lifted_for_being_its_lists_best() -> None:
    documents = normalise_keyword({"weak": 0.003, "none": 0.0}, floor=2.0).scores
    sessions = normalise_keyword({"strong": 12.0, "second": 11.0}, floor=2.0).scores
    assert documents == {"weak": 0.0015, "none": 0.0}
    ranked = weighted_sum({"documents": documents, "sessions": sessions}, WEIGHTS)
    assert [hit.doc_id for hit in ranked] == ["strong", "second", "weak", "none"]


def test_c18_nan_infinity_and_negative_scores() -> None:
    assert normalise_keyword(
        {"a": math.nan, "b": -3.0, "c": 4.0, "d": 2.0, "e": math.inf, "f": -math.inf}
    ) == Normalised(
        scores={"a": 0.0, "b": 0.0, "c": 1.0, "d": 0.5, "e": 1.0, "f": 0.0}, refused=("a", "b", "e", "f")
    )
    assert normalise_keyword({"a": math.nan}) == Normalised(scores={"a": 0.0}, refused=("a",))
    assert normalise_keyword({"a": 0.0, "b": 0.0}) == Normalised(scores={"a": 0.0, "b": 0.0})
    assert normalise_vector({"a": math.nan, "b": 0.9, "c": 0.85}, cosine_floor=0.8) == Normalised(
        scores=normalise_vector({"b": 0.9, "c": 0.85}, cosine_floor=0.8).scores | {"a": 0.0}, refused=("a",)
    )


def test_c18_an_absent_source_takes_only_its_own_share() -> None:
    both = weighted_sum({"documents": {"d": 1.0}, "sessions": {"s": 1.0}, "entities": {}}, WEIGHTS)
    alone = weighted_sum({"documents": {"d": 1.0}}, WEIGHTS)
    assert [hit.score for hit in both if hit.doc_id == "d"] == [hit.score for hit in alone] == [0.4]


def test_c18_ties_go_by_id() -> None:
    lists = {"documents": {"c": 0.5, "a": 0.5, "b": 0.5}}
    assert [hit.doc_id for hit in weighted_sum(lists, {"documents": 1.0})] == ["a", "b", "c"]


def test_cosines_are_stretched_from_the_floor() -> None:
    scores = normalise_vector({"same": 1.0000002, "near": 0.9, "far": 0.7}, cosine_floor=0.8).scores
    assert scores == pytest.approx({"same": 1.0, "near": 0.5, "far": 0.0})


def test_rrf_is_scaled_to_one() -> None:
    lists = {"x": normalise_place({"a": 9.0, "b": 3.0}).scores, "y": normalise_place({"a": 0.1}).scores}
    assert weighted_sum(lists, shares({"x": 1.0, "y": 1.0})) == [
        Fused(doc_id="a", score=1.0, parts={"x": 0.5, "y": 0.5}),
        Fused(doc_id="b", score=61 / 62 / 2, parts={"x": 61 / 62 / 2}),
    ]


@pytest.mark.parametrize("floor", [0.0, -1.0, math.nan, math.inf])
def test_a_floor_must_be_positive(floor: float) -> None:
    with pytest.raises(ValueError, match="floor"):
        normalise_keyword({"a": 1.0}, floor=floor)


def test_places_of_equal_and_refused_scores() -> None:
    assert normalise_place({"b": 2.0, "a": 2.0, "c": math.nan, "d": 5.0}) == Normalised(
        scores={"d": 1.0, "a": 61 / 62, "b": 61 / 63, "c": 61 / 64}, refused=("c",)
    )
    assert normalise_place({}) == Normalised(scores={})


def test_weights_are_shares_and_none_is_no_preference() -> None:
    assert shares({"a": 3.0, "b": 1.0}) == {"a": 0.75, "b": 0.25}
    assert shares({"a": 0.0, "b": 0.0}) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_weights_must_be_finite_and_not_negative(weight: float) -> None:
    with pytest.raises(ValueError, match="weights"):
        shares({"a": weight, "b": 2.0})
