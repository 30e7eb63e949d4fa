"""Scores of different sources → 0..1 → one order.

The rule, in full:

1. A score that is NaN counts as no hit and ranks last with 0; infinity counts as the list's best finite
   score, or 1 where there is none; a negative score counts as 0. Each of these is reported (`refused`).
2. Keyword scores are divided by max(best score of the list, floor of the leg). The floor is what a weak but
   honest match scores: a list whose best is 0.003 is not lifted to 1. Nothing depends on the size of the
   page.
3. Cosines become (cosine - floor) / (1 - floor), clipped to 0..1, where the floor is the model's cosine of
   unrelated texts; rule 2 then applies, with a floor of its own.
4. One hit, or equal scores, are no case of their own: at or over the floor each gets 1, below it its share of
   the floor. So a hit's score doesn't jump when a filter leaves it alone.
5. Weights are shares of the sum of *all* weights that were asked, absent lists included: an empty list
   takes nothing from other lists' hits but its own share. Sums are exact (fsum); ties go by id.
6. Reciprocal rank fusion is rule 5 over other numbers: what rules 1 to 4 give is replaced by the place in its
   list, (k + 1) / (k + place), so that first in every list is 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

#: BM25 of a weak match in a small index.
KEYWORD_FLOOR = 1.0
#: Normalised cosine of a weak match.
VECTOR_FLOOR = 0.3
RRF_K = 60

Scores = Mapping[str, float]
#: Of a list.
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalised:
    """0..1 by id, in the order of the raw scores.

    `refused`: ids whose raw score was NaN, infinite or negative (a warning to count).
    """

    scores: dict[str, float]
    refused: tuple[str, ...] = ()
    #: What rule 2 divided by.
    scale: float = 1.0


def normalise_keyword(raw: Scores, *, floor: float = KEYWORD_FLOOR) -> Normalised:
    """Rules 1 and 2 (and so 4)."""
    if not (floor > 0 and math.isfinite(floor)):
        raise ValueError(f"the floor of a leg must be a positive number, not {floor!r}")
    cleaned, refused = _clean(raw)
    if not cleaned:
        return Normalised(scores={})
    scale = max(*cleaned.values(), floor)
    divided = {doc_id: score / scale for doc_id, score in cleaned.items()}
    return Normalised(scores=divided, refused=refused, scale=scale)


def normalise_vector(cosines: Scores, *, cosine_floor: float, floor: float = VECTOR_FLOOR) -> Normalised:
    """Rule 3. Values above 1 are rounding and count as 1; a cosine below the floor is an honest 0."""
    if not -1 <= cosine_floor < 1:
        raise ValueError(f"the cosine floor must be in [-1, 1), not {cosine_floor!r}")
    bad = {doc_id for doc_id, cosine in cosines.items() if not math.isfinite(cosine)}
    lifted = {doc_id: (cosine - cosine_floor) / (1 - cosine_floor) for doc_id, cosine in cosines.items()}
    lifted |= {doc_id: min(max(score, 0.0), 1.0) for doc_id, score in lifted.items() if not 0 <= score <= 1}
    lifted |= dict.fromkeys(bad, math.nan)
    divided = normalise_keyword(lifted, floor=floor)
    return Normalised(scores=divided.scores, refused=tuple(sorted(bad)), scale=divided.scale)


def normalise_place(raw: Scores, *, k: int = RRF_K) -> Normalised:
    """Rule 6: only the order counts. Scores that rule 1 makes equal go by id."""
    cleaned, refused = _clean(raw)
    ordered = sorted(cleaned, key=lambda doc_id: rank_key(cleaned[doc_id], doc_id))
    return Normalised(
        scores={doc_id: (k + 1) / (k + place) for place, doc_id in enumerate(ordered, start=1)},
        refused=refused,
    )


def shares(weights: Mapping[Name, float]) -> dict[Name, float]:
    """Rule 5. All zero is no preference: equal shares."""
    total = math.fsum(weights.values())
    if not math.isfinite(total) or min(weights.values(), default=0) < 0:
        raise ValueError("weights must be finite and not negative")
    return {name: weight / total if total else 1 / len(weights) for name, weight in weights.items()}


def total(contributions: Collection[float]) -> float:
    """The exact sum, rounded once: in whatever order. The plain sum of two numbers is that already."""
    return sum(contributions) if len(contributions) <= 2 else math.fsum(contributions)


def rank_key(score: float, doc_id: str) -> tuple[float, str]:
    """Sorts best first, equal scores by id."""
    return (-score, doc_id)


def _clean(raw: Scores) -> tuple[dict[str, float], tuple[str, ...]]:
    if math.isfinite(sum(raw.values())) and min(raw.values(), default=0.0) >= 0:
        # Nothing to clean: NaN and infinity would show in the sum.
        return dict(raw), ()
    best = max((score for score in raw.values() if math.isfinite(score) and score > 0), default=1.0)
    cleaned = {
        doc_id: 0.0 if math.isnan(score) else min(max(score, 0.0), best) for doc_id, score in raw.items()
    }
    refused = (doc_id for doc_id, score in raw.items() if not math.isfinite(score) or score < 0)
    return cleaned, tuple(sorted(refused))
