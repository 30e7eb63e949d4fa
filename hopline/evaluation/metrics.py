"""How good one ranked list is, and how sure a mean is. Pure.

`found` is the list of ids, best first; a repeated id counts where it first stands. `gold` gives each judged id its
grade; ids of grade 0 or less are judged and wrong, like those that aren't in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

#: Places that nDCG and the reciprocal rank look at.
DEPTH = 10
CONFIDENCE = 0.95
RESAMPLES = 2_000
#: Drawn numbers held at once: 16 MiB.
_BATCH_NUMBERS = 2_000_000


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A mean over `count` queries and the borders of its confidence interval. No query: all None."""

    mean: float | None
    low: float | None
    high: float | None
    count: int


def recall(found: Sequence[str], gold: Mapping[str, float], k: int) -> float:
    """|gold among the first k| / |gold|: the definition of HippoRAG and LoCoMo. ValueError where gold is empty."""
    right = relevant(gold)
    return len(right & set(_once(found)[:k])) / len(right)


def precision(found: Sequence[str], gold: Mapping[str, float], k: int) -> float:
    """|gold among the first k| / k; a list shorter than k isn't rewarded for it."""
    return len(relevant(gold) & set(_once(found)[:k])) / k


def reciprocal_rank(found: Sequence[str], gold: Mapping[str, float]) -> float:
    """1 / place of the first right one within `DEPTH`, else 0."""
    right = relevant(gold)
    places = (place for place, doc in enumerate(_once(found)[:DEPTH], start=1) if doc in right)
    return next((1 / place for place in places), 0.0)


def ndcg(found: Sequence[str], gold: Mapping[str, float]) -> float:
    """Σ grade / log2(place + 1) within `DEPTH`, divided by that of the best order (trec_eval's, linear gain)."""
    grades = {doc: gold[doc] for doc in relevant(gold)}
    best = sorted(grades.values(), reverse=True)
    return _gain(grades.get(doc, 0.0) for doc in _once(found)) / _gain(best)


def relevant(gold: Mapping[str, float]) -> frozenset[str]:
    """The ids of a positive grade. ValueError where there is none: then nothing can be said of a list."""
    right = frozenset(doc for doc, grade in gold.items() if grade > 0)
    if not right:
        msg = "no judged id has a positive grade"
        raise ValueError(msg)
    return right


def estimate(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """The percentile bootstrap over queries: the same values and seed give the same interval.

    Two configurations with one seed are resampled alike, query by query.
    """
    count = len(values)
    if not count:
        return Estimate(mean=None, low=None, high=None, count=0)
    known = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed)
    batch = max(1, _BATCH_NUMBERS // count)
    sizes = [min(batch, resamples - done) for done in range(0, resamples, batch)]
    means = np.concatenate([known[drawn.integers(count, size=(size, count))].mean(axis=1) for size in sizes])
    rest = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (rest, 1 - rest))
    return Estimate(mean=math.fsum(values) / count, low=float(low), high=float(high), count=count)


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value that `share` of them don't exceed (nearest rank); None for no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _once(found: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(found))


def _gain(grades: Iterable[float]) -> float:
    first = (grade for _, grade in zip(range(DEPTH), grades, strict=False))
    return math.fsum(grade / math.log2(place + 1) for place, grade in enumerate(first, start=1))
