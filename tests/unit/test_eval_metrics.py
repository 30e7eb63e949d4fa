"""Measures of one ranked list against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from hopline.evaluation.metrics import (
    Estimate,
    estimate,
    ndcg,
    percentile,
    precision,
    recall,
    reciprocal_rank,
)

GOLD = {"a": 2.0, "b": 1.0, "wrong": 0.0}


@pytest.mark.parametrize(
    ("found", "at_2", "at_5"),
    [
        pytest.param(["a", "b"], 1.0, 1.0, id="all"),
        pytest.param(["x", "y", "a"], 0.0, 0.5, id="one, late"),
        pytest.param(["wrong", "a"], 0.5, 0.5, id="judged wrong"),
        pytest.param(["a", "a", "b"], 1.0, 1.0, id="a repeated id takes no second place"),
        pytest.param([], 0.0, 0.0, id="nothing found"),
    ],
)
def test_recall_is_the_share_of_the_gold_within_k(found: list[str], at_2: float, at_5: float) -> None:
    assert (recall(found, GOLD, 2), recall(found, GOLD, 5)) == (at_2, at_5)


def test_precision_divides_by_k_however_short_the_list() -> None:
    assert precision(["a", "x", "b"], GOLD, 5) == 2 / 5
    assert precision(["a"], GOLD, 5) == 1 / 5


def test_reciprocal_rank_of_the_first_right_one_within_ten() -> None:
    others = [f"x{number}" for number in range(9)]
    assert reciprocal_rank(["x", "wrong", "b", "a"], GOLD) == 1 / 3
    assert reciprocal_rank([*others, "a"], GOLD) == 1 / 10
    assert reciprocal_rank([*others, "y", "a"], GOLD) == 0.0


def test_ndcg_with_linear_gain_and_the_best_order_as_one() -> None:
    best = 2 + 1 / math.log2(3)
    assert ndcg(["a", "b"], GOLD) == pytest.approx(1.0)
    assert ndcg(["b", "a"], GOLD) == pytest.approx((1 + 2 / math.log2(3)) / best)
    assert ndcg(["x", "x", "a"], GOLD) == pytest.approx((2 / math.log2(3)) / best)
    assert ndcg([f"x{number}" for number in range(10)] + ["a"], GOLD) == 0.0


def test_without_a_right_document_nothing_can_be_said() -> None:
    with pytest.raises(ValueError, match="positive grade"):
        recall(["a"], {"a": 0.0}, 5)


def test_interval_holds_the_mean_and_comes_out_alike_for_one_seed() -> None:
    values = [0.0, 1.0, 1.0, 0.5] * 25
    first, again, other = estimate(values, seed=7), estimate(values, seed=7), estimate(values, seed=8)
    assert first == again
    assert first != other
    assert first.mean == 0.625
    assert first.low is not None
    assert first.high is not None
    # Normal approximation: 0.625 ± 1.96 · 0.4146 / 10.
    assert first.low == pytest.approx(0.544, abs=0.02)
    assert first.high == pytest.approx(0.706, abs=0.02)


def test_one_value_and_none() -> None:
    assert estimate([0.5]) == Estimate(mean=0.5, low=0.5, high=0.5, count=1)
    assert estimate([]) == Estimate(mean=None, low=None, high=None, count=0)


def test_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([float(number) for number in range(1, 101)], 0.95) == 95.0
    assert percentile([5.0], 0.95) == 5.0
    assert percentile([], 0.5) is None
