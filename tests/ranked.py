"""Candidates as the recall makes them, and what the stages need beside them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from indexers.domain.sources import SOURCE_RANKS
from search_api.models import Leg
from search_api.ranking_settings import RankingRules
from search_api.retrieval.candidates import Candidate, DocumentView, Evidence, FoundChunk, Ranking, SaidName
from search_api.retrieval.graphing import HOP_RULE, MASS_RULE, VALUE_RULE
from search_api.retrieval.legs import list_weights
from search_api.retrieval.naming import exact_candidate
from search_api.retrieval.normalising import (
    KEYWORD_RULE,
    NAMES_RULE,
    OTHER_LANGUAGE_RULE,
    PLACE_RULE,
    VECTOR_RULE,
)
from search_api.retrieval.router import Route, route

NOW = datetime(2031, 4, 9, 15, tzinfo=UTC)
#: Shares that are easy to reckon with, whatever the defaults are.
EVEN: dict[str, Any] = {
    "documents_weight": 0.4,
    "session_summaries_weight": 0.3,
    "entities_weight": 0.3,
    "keyword_weight": 0.5,
    "vector_weight": 0.5,
}
#: Without what lowers or lifts: scores are sums of contributions.
PLAIN: dict[str, Any] = EVEN | {"stages_off": ("health", "source", "recency", "validity", "boost")}
#: The documents leg alone, both parts alike.
DOCUMENTS_ALONE: dict[str, Any] = PLAIN | {"session_summaries_weight": 0.0, "entities_weight": 0.0}
COSINE_FLOOR = 0.75


def document(doc_id: str, **changes: Any) -> DocumentView:
    values: dict[str, Any] = {
        "tenant_id": "acme",
        "agent_id": "ada",
        "team_id": None,
        "scope": "shared",
        "doc_id": doc_id,
        "path": f"{doc_id}.md",
        "title": doc_id,
        "abstract": "",
        "doc_type": "note",
        "source": "sync",
        "tags": [],
        "content_hash": "sha256:0",
        "size": 1,
        "left_out_bytes": 0,
        "no_vector_reason": None,
        "version": 1,
        "deleted": False,
    }
    return DocumentView(**(values | changes))


def by_words(doc_id: str, raw: float, *, leg: Leg = "documents", **changes: Any) -> Candidate:
    row = document(doc_id, **changes)
    evidence = Evidence(leg=leg, part="keyword", raw=raw, normalised=raw, version=row.version)
    return Candidate(doc_id=doc_id, document=row, facts=row, evidence=(evidence,))


def by_vector(
    doc_id: str, cosine: float, ordinal: int = 0, version: int = 1, *, leg: Leg = "documents", **facts: Any
) -> Candidate:
    chunk = FoundChunk(
        ordinal=ordinal, start=0, end=9, heading_path=(), doc_id=doc_id, version=version, **facts
    )
    evidence = Evidence(leg=leg, part="vector", raw=cosine, normalised=cosine, version=version, span=chunk)
    return Candidate(doc_id=doc_id, document=None, facts=chunk, evidence=(evidence,))


def by_names(doc_id: str, raw: float, **changes: Any) -> Candidate:
    row = document(doc_id, **changes)
    said = SaidName(label="crew", name="Copper Guild", documents=1, idf=1.0, weight=raw)
    evidence = Evidence(
        leg="entities", part="names", raw=raw, normalised=raw, version=row.version, names=(said,)
    )
    return Candidate(doc_id=doc_id, document=row, facts=row, evidence=(evidence,))


def exact(doc_id: str, **changes: Any) -> Candidate:
    return exact_candidate(document(doc_id, **changes))


def ranking(
    query: str | None = None, *, now: datetime = NOW, language: str | None = None, **rules: Any
) -> Ranking:
    """Of all parts; `query`: what the router reads; `language`: of the query."""
    made = RankingRules(**rules)
    return Ranking(
        rules=made,
        weights=list_weights(made, frozenset(("keyword", "vector", "names", "graph"))),
        cosine_floor=COSINE_FLOOR,
        source_ranks=SOURCE_RANKS,
        route=Route(now=now) if query is None else route(query, now),
        language=language,
    )


def _normalised(reason: dict[str, Any], cosine_floor: float) -> Any:
    raw, scale = reason["raw_score"], reason["scale"]
    match reason["normaliser"]:
        case rule if rule == PLACE_RULE:
            return 61 / (60 + scale)
        case rule if rule == VECTOR_RULE:
            return min(max((raw - cosine_floor) / (1 - cosine_floor), 0.0), 1.0) / scale
        case rule if rule in (KEYWORD_RULE, NAMES_RULE, MASS_RULE) or rule.startswith(OTHER_LANGUAGE_RULE):
            power = int(rule.rpartition("^")[2]) if rule.startswith(OTHER_LANGUAGE_RULE) else 1
            return (max(raw, 0.0) / scale) ** power
        case rule if rule == VALUE_RULE:
            return min(1.0, raw)
        case rule if rule == HOP_RULE:
            return raw - scale
        case _:
            return raw


def _factor(name: str, given: dict[str, Any]) -> Any:
    """As docs/explanation/scores.md has the formulas."""
    match name:
        case "health":
            return given["floor"] + (1 - given["floor"]) * given["health"]
        case "source":
            return given["floor"] + (1 - given["floor"]) * (given["rank"] / 9)
        case "recency":
            if not given["weight"]:
                return 1.0
            age = given["age_days"]
            return 1 - given["weight"] * (
                1 - (0.5 if age is None else 0.5 ** (age / given["half_life_days"]))
            )
        case "validity":
            return 1.0 if given["reason"] is None else given["factor"]
        case _:
            return math.prod(1 + given["boosts"][name] for name in sorted(given["boosts"]))


def recomputed(hit: dict[str, Any], cosine_floor: float) -> float:
    """A hit's score from what `explain` says of it; each number on the way is checked."""
    for reason in hit["reasons"]:
        assert _normalised(reason, cosine_floor) == reason["normalised"]
        assert reason["normalised"] * reason["weight"] == reason["contribution"]
    score: float = math.fsum(reason["contribution"] for reason in hit["reasons"])
    for one in hit["factors"]:
        assert _factor(one["name"], one["inputs"]) == one["value"]
        score *= one["value"]
    return score
