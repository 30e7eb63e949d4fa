"""What a document's own properties make of its score: factors, multiplied in a fixed order. Pure.

They lower (health, source, age, validity) or lift a little (what the query says of tags, category, agent, time) and
never hide. A document that was named exactly takes no factor: it comes first, however unhealthy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from msgspec.structs import replace

from indexers.domain.sources import RANK_MAX, UNKNOWN
from search_api.retrieval.candidates import Candidate, DocumentView, Facts, Ranking
from search_api.retrieval.router import Route

#: More than all other evidence can give: shares add up to 1, the graph's parts give at most 3 each, `hop` three times
#: the best sum, and four boosts half as much again each. So such a hit stands before every other.
EXACT_WEIGHT: Final = 1_000.0
#: A little less: a cosine that wasn't brought to 0..1 (the stage is off) may be negative and takes away from the sum.
_EXACT_FROM: Final = EXACT_WEIGHT - 10
#: In the order of multiplication; the stages of the same names.
FACTORS: Final = ("health", "source", "recency", "validity", "boost")
_DAY_SECONDS: Final = 86_400.0


def factor(name: str, candidate: Candidate, ranking: Ranking) -> float:
    return 1.0 if candidate.facts is None else _FACTORS[name](candidate.facts, ranking)


def is_exact(candidate: Candidate) -> bool:
    """It was named exactly: nothing else gives so much."""
    return candidate.recall_score >= _EXACT_FROM


def apply_factor(name: str, candidates: Sequence[Candidate], ranking: Ranking) -> list[Candidate]:
    """Scores times this factor."""
    if name == "recency" and not ranking.rules.recency_weight:
        return list(candidates)
    of, read, found = _FACTORS[name], _READS[name], []
    if name == "boost" and ranking.route.times:
        read = _dated
    # Most documents say the same as another.
    known: dict[Hashable, float] = {}
    for candidate in candidates:
        facts = candidate.facts
        # As `is_exact`: this runs for every candidate and factor.
        if facts is None or candidate.recall_score >= _EXACT_FROM:
            found.append(candidate)
            continue
        said = read(facts)
        value = known.get(said)
        if value is None:
            value = known[said] = of(facts, ranking)
        found.append(candidate if value == 1.0 else replace(candidate, score=candidate.score * value))
    return found


def invalid(facts: Facts, now: datetime) -> str | None:
    """Why a document isn't valid at this time: superseded, expired, not_yet_valid; None: it is."""
    if facts.superseded_by is not None:
        return "superseded"
    if (end := moment(facts.expires_at)) is not None and end <= now:
        return "expired"
    if (start := moment(facts.valid_from)) is not None and start > now:
        return "not_yet_valid"
    return None


def inputs(name: str, candidate: Candidate, ranking: Ranking) -> dict[str, Any]:
    """What the factor was made of, for an answer."""
    facts, rules = candidate.facts, ranking.rules
    if facts is None:
        return {}
    match name:
        case "health":
            reasons = [] if candidate.document is None else candidate.document.health_reasons
            return {"health": facts.health, "floor": rules.health_floor, "penalties": reasons}
        case "source":
            rank = _source_rank(facts, ranking)
            return {"source": facts.source, "rank": rank, "floor": rules.source_floor}
        case "recency":
            return {
                "age_days": _age_days(facts, ranking.route.now),
                "half_life_days": rules.recency_half_life_days,
                "weight": rules.recency_weight,
            }
        case "validity":
            return {"reason": invalid(facts, ranking.route.now), "factor": rules.validity_factor}
        case _:
            return {"boosts": _boosts(facts, ranking)}


def recomputed(name: str, given: Mapping[str, Any]) -> float:
    """The factor from its inputs as an answer gives them."""
    match name:
        case "health":
            return _above(given["floor"], given["health"])
        case "source":
            return _above(given["floor"], given["rank"] / RANK_MAX)
        case "recency":
            return _aged(given["age_days"], given["half_life_days"], given["weight"])
        case "validity":
            return 1.0 if given["reason"] is None else float(given["factor"])
        case _:
            return _lifted(given["boosts"])


@lru_cache(maxsize=4_096)
def _above(floor: float, value: float) -> float:
    return floor + (1 - floor) * min(max(value, 0.0), 1.0)


def _health(facts: Facts, ranking: Ranking) -> float:
    return _above(ranking.rules.health_floor, facts.health)


def _source(facts: Facts, ranking: Ranking) -> float:
    return _above(ranking.rules.source_floor, _source_rank(facts, ranking) / RANK_MAX)


def _validity(facts: Facts, ranking: Ranking) -> float:
    return 1.0 if invalid(facts, ranking.route.now) is None else ranking.rules.validity_factor


def _source_rank(facts: Facts, ranking: Ranking) -> int:
    ranks = ranking.source_ranks
    return ranks.get(facts.source, ranks.get(UNKNOWN, 0))


def _recency(facts: Facts, ranking: Ranking) -> float:
    rules = ranking.rules
    if not rules.recency_weight:
        return 1.0
    age = _age_days(facts, ranking.route.now)
    return _aged(age, rules.recency_half_life_days, rules.recency_weight)


def _aged(age_days: float | None, half_life_days: float, weight: float) -> float:
    """1 - weight · (1 - 0.5^(age/half-life)); a document without a date is as old as one half-life."""
    if not weight:
        return 1.0
    left = 0.5 if age_days is None else 0.5 ** (age_days / half_life_days)
    return 1 - weight * (1 - left)


def _age_days(facts: Facts, now: datetime) -> float | None:
    written = moment(facts.updated_at) or moment(facts.created_at)
    return None if written is None else max((now - written).total_seconds() / _DAY_SECONDS, 0.0)


def _boost(facts: Facts, ranking: Ranking) -> float:
    route = ranking.route
    # Of a row of a chunk only its dates can be said: see `_boosts`.
    if not route.times and not (route.words and isinstance(facts, DocumentView)):
        return 1.0
    boosts = _boosts(facts, ranking)
    return _lifted(boosts) if boosts else 1.0


def _lifted(boosts: Mapping[str, float]) -> float:
    value = 1.0
    for name in sorted(boosts):
        value *= 1 + boosts[name]
    return value


def _boosts(facts: Facts, ranking: Ranking) -> dict[str, float]:
    """What the query says of the document. Rows of chunks know no tags: what only a vector found has no such boost."""
    route, rules = ranking.route, ranking.rules
    boosts: dict[str, float] = {}
    if isinstance(facts, DocumentView):
        if rules.tag_boost and _says_any(route, facts.tags):
            boosts["tags"] = rules.tag_boost
        if rules.category_boost and facts.category and route.says(facts.category):
            boosts["category"] = rules.category_boost
        if rules.agent_boost and route.says(facts.agent_id):
            boosts["agent"] = rules.agent_boost
    if rules.time_boost and route.times:
        dates = [d for d in (moment(facts.created_at), moment(facts.updated_at)) if d is not None]
        if any(time.holds(date) for time in route.times for date in dates):
            boosts["time"] = rules.time_boost
    return boosts


def _says_any(route: Route, tags: Sequence[str]) -> bool:
    for tag in tags:  # noqa: SIM110 - asked for every row
        if tag in route.tags or route.says(tag):
            return True
    return False


@lru_cache(maxsize=16_384)
def moment(written: str | None) -> datetime | None:
    """A date of a row; None for what is none. Without an offset it is UTC."""
    if written is None:
        return None
    try:
        found = datetime.fromisoformat(written)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _said(facts: Facts) -> Hashable:
    """What the query may say of it; of its dates, `_dated`."""
    return (*facts.tags, None, facts.category, facts.agent_id) if isinstance(facts, DocumentView) else None


def _dated(facts: Facts) -> Hashable:
    return _said(facts), facts.created_at, facts.updated_at


#: All that a factor reads of a document.
_READS: Final[Mapping[str, Callable[[Facts], Hashable]]] = {
    "health": attrgetter("health"),
    "source": attrgetter("source"),
    "recency": attrgetter("updated_at", "created_at"),
    "validity": attrgetter("superseded_by", "expires_at", "valid_from"),
    "boost": _said,
}
_FACTORS: Final[Mapping[str, Callable[[Facts, Ranking], float]]] = {
    "health": _health,
    "source": _source,
    "recency": _recency,
    "validity": _validity,
    "boost": _boost,
}
