from __future__ import annotations

import math

import pytest

from indexers.domain.scores import (
    Normalised,
    normalise_keyword,
    normalise_place,
    normalise_vector,
    shares,
    total,
)

#: Case C18's one constant: a hit alone in its list, or among equals, at or over the floor.
ALONE = 1.0


def test_c18_single_hit_empty_list_and_all_equal() -> None:
    documents = normalise_keyword({"d1": 7.2}, floor=2.0)
    sessions = normalise_keyword({}, floor=2.0)
    entities = normalise_keyword({"e1": 0.41, "e2": 0.41, "e3": 0.41}, floor=0.3)
    assert documents == Normalised(scores={"d1": ALONE}, scale=7.2)
    assert sessions == Normalised(scores={})
    assert entities == Normalised(scores={"e1": ALONE, "e2": ALONE, "e3": ALONE}, scale=0.41)


def test_c18_a_hit_keeps_its_score_when_a_filter_leaves_it_alone() -> None:
    among, alone = (
        normalise_keyword({"a": 9.0, "b": 3.0}, floor=2.0),
        normalise_keyword({"a": 9.0}, floor=2.0),
    )
    assert among.scores["a"] == alone.scores["a"] == ALONE
    assert normalise_keyword({"a": 0.5, "b": 0.5}, floor=2.0).scores == {"a": 0.25, "b": 0.25}
    assert normalise_keyword({"a": 0.003}, floor=1.0).scores == {"a": 0.003}


def test_c18_a_weak_hit_is_not_lifted_for_being_its_lists_best() -> None:
    assert normalise_keyword({"weak": 0.003, "none": 0.0}, floor=2.0) == Normalised(
        scores={"weak": 0.0015, "none": 0.0}, scale=2.0
    )


def test_c18_nan_infinity_and_negative_scores() -> None:
    assert normalise_keyword(
        {"a": math.nan, "b": -3.0, "c": 4.0, "d": 2.0, "e": math.inf, "f": -math.inf}
    ) == Normalised(
        scores={"a": 0.0, "b": 0.0, "c": 1.0, "d": 0.5, "e": 1.0, "f": 0.0},
        refused=("a", "b", "e", "f"),
        scale=4.0,
    )
    assert normalise_keyword({"a": math.nan}) == Normalised(scores={"a": 0.0}, refused=("a",))
    assert normalise_keyword({"a": 0.0, "b": 0.0}) == Normalised(scores={"a": 0.0, "b": 0.0})
    assert normalise_vector({"a": math.nan, "b": 0.9, "c": 0.85}, cosine_floor=0.8) == Normalised(
        scores=normalise_vector({"b": 0.9, "c": 0.85}, cosine_floor=0.8).scores | {"a": 0.0},
        refused=("a",),
        scale=normalise_vector({"b": 0.9, "c": 0.85}, cosine_floor=0.8).scale,
    )


def test_cosines_are_stretched_from_the_floor() -> None:
    scores = normalise_vector({"same": 1.0000002, "near": 0.9, "far": 0.7}, cosine_floor=0.8).scores
    assert scores == pytest.approx({"same": 1.0, "near": 0.5, "far": 0.0})


def test_a_total_is_the_exact_sum_whatever_the_order() -> None:
    assert total([]) == 0
    assert total([0.1, 0.2]) == 0.1 + 0.2
    numbers = [0.1] * 10
    assert total(numbers) == total(numbers[::-1]) == 1.0


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
