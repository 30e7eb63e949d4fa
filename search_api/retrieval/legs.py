"""The searches of the recall, and the candidates of their answers. Pure.

Leg `documents`: words and vectors of all but session summaries; leg `session_summaries`: the same of those; leg
`entities`: documents that say a name that the query says. Beside them what the query names: titles, paths, ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import structlog

from indexers.domain import scores
from indexers.domain.identity import Principal
from indexers.opensearch.gate import GatedSearch, SearchHit, SearchPage
from indexers.opensearch.rows import Index
from search_api.models import Leg, Part
from search_api.ranking_settings import RankingRules
from search_api.requests import SearchFilters
from search_api.retrieval.candidates import (
    Candidate,
    ChunkHit,
    DocumentHit,
    DocumentView,
    Evidence,
    FoundChunk,
    LegPart,
    MentionHit,
    NameHit,
)
from search_api.retrieval.name_queries import count_body, mentions_body, named_body, names_body
from search_api.retrieval.queries import SUMMARY_TYPE, keyword_body, vector_body
from search_api.retrieval.router import Names, Route

log = structlog.get_logger()

TextLeg = Literal["documents", "session_summaries"]
Search = tuple[TextLeg, Literal["keyword", "vector"]] | Literal["mentions", "names", "named", "count"]
#: In the order in which they are sent.
SEARCHES: Final[tuple[Search, ...]] = (
    ("documents", "keyword"),
    ("documents", "vector"),
    ("session_summaries", "keyword"),
    ("session_summaries", "vector"),
    "mentions",
    "names",
    "count",
    "named",
)
TEXT_LEGS: Final[tuple[TextLeg, ...]] = ("documents", "session_summaries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as the recall needs it."""

    query: str
    route: Route
    names: Names
    filters: SearchFilters
    parts: frozenset[Part]
    rules: RankingRules


def list_weights(rules: RankingRules, parts: frozenset[Part]) -> dict[LegPart, float]:
    """Share of each list: of its leg, times that of the part within the leg. What finds nothing keeps its share."""
    within: dict[Literal["keyword", "vector"], float] = {}
    if "keyword" in parts:
        within["keyword"] = rules.keyword_weight
    if "vector" in parts:
        within["vector"] = rules.vector_weight
    legs: dict[Leg, float] = {
        "documents": rules.documents_weight if within else 0.0,
        "session_summaries": rules.session_summaries_weight if within else 0.0,
        # Alone it is all there is, whatever it weighs beside others.
        "entities": (rules.entities_weight or (0.0 if within else 1.0)) if "names" in parts else 0.0,
    }
    of_legs = scores.shares({leg: weight for leg, weight in legs.items() if weight})
    of_parts = scores.shares(within)
    weights: dict[LegPart, float] = {}
    for leg, share in of_legs.items():
        if leg == "entities":
            weights[leg, "names"] = share
        else:
            for part, of_part in of_parts.items():
                weights[leg, part] = share * of_part
    return weights


def leg_searches(
    principal: Principal, asked: Asked, passing: Sequence[str] | None
) -> dict[Search, GatedSearch]:
    """By name, all but `vector_searches`; `passing`: ids of documents that pass the filters, where rows can't tell."""
    searches: dict[Search, GatedSearch] = {}

    def add(name: Search, index: Index, body: dict[str, Any] | None, hit: type[SearchHit]) -> None:
        if body is not None:
            searches[name] = GatedSearch(principal=principal, index=index, body=body, hit=hit)

    weights = list_weights(asked.rules, asked.parts)
    depth = asked.rules.candidates
    for leg in _asked_legs(asked, weights, "keyword"):
        body = keyword_body(asked.query, asked.filters, size=depth, summaries=leg == "session_summaries")
        add((leg, "keyword"), Index.DOCUMENTS, body, DocumentHit)
    if asked.names.entity_keys:
        if weights.get(("entities", "names")) and passing != ():
            body = mentions_body(asked.names, asked.filters, size=depth, doc_ids=passing)
            add("mentions", Index.MENTIONS, body, MentionHit)
        add("names", Index.ENTITIES, names_body(asked.names), NameHit)
        add("count", Index.DOCUMENTS, count_body(), SearchHit)
    add("named", Index.DOCUMENTS, named_body(asked.route, asked.names, asked.filters), DocumentHit)
    return searches


def vector_searches(
    principal: Principal, asked: Asked, vector: Sequence[float], passing: Sequence[str] | None
) -> dict[Search, GatedSearch]:
    """By name, those for the query's vector."""
    if passing == ():
        return {}
    weights, near = list_weights(asked.rules, asked.parts), asked.rules.vector_candidates
    searches: dict[Search, GatedSearch] = {}
    for leg in _asked_legs(asked, weights, "vector"):
        summaries = leg == "session_summaries"
        body = vector_body(vector, asked.filters, size=near, doc_ids=passing, summaries=summaries)
        searches[leg, "vector"] = GatedSearch(
            principal=principal, index=Index.CHUNKS, body=body, hit=ChunkHit
        )
    return searches


def named_rows(pages: Mapping[Search, SearchPage]) -> dict[str, DocumentView]:
    """Rows of documents that any of the searches brought."""
    names: list[Search] = [*((leg, "keyword") for leg in TEXT_LEGS), "named"]
    return {hit.source.doc_id: hit.source for name in names if name in pages for hit in pages[name].hits}


def leg_candidates(
    pages: Mapping[Search, SearchPage], documents: Mapping[str, DocumentView]
) -> tuple[list[Candidate], dict[LegPart, int]]:
    """One a row of the legs of texts, and how many rows each list had."""
    candidates: list[Candidate] = []
    found: dict[LegPart, int] = {}
    for leg in TEXT_LEGS:
        words, near = pages.get((leg, "keyword")), pages.get((leg, "vector"))
        if words is not None:
            found[leg, "keyword"] = len(words.hits)
            candidates += [_keyword_candidate(hit, leg) for hit in words.hits]
        if near is not None:
            found[leg, "vector"] = len(near.hits)
            candidates += [_vector_candidate(hit, leg, documents) for hit in near.hits]
    return candidates, found


def _asked_legs(
    asked: Asked, weights: Mapping[LegPart, float], part: Literal["keyword", "vector"]
) -> list[TextLeg]:
    return [
        leg
        for leg in TEXT_LEGS
        if weights.get((leg, part)) and _may_hold(asked.filters, summaries=leg == "session_summaries")
    ]


def _may_hold(filters: SearchFilters, *, summaries: bool) -> bool:
    """Whether documents of the leg pass the filter by type."""
    types = set(filters.doc_type)
    return not types or (SUMMARY_TYPE in types if summaries else types != {SUMMARY_TYPE})


def _keyword_candidate(hit: SearchHit, leg: Leg) -> Candidate:
    document: DocumentView = hit.source
    raw = _finite(hit)
    evidence = Evidence(leg=leg, part="keyword", raw=raw, normalised=raw, version=document.version)
    return Candidate(doc_id=document.doc_id, document=document, facts=document, evidence=(evidence,))


def _vector_candidate(hit: SearchHit, leg: Leg, documents: Mapping[str, DocumentView]) -> Candidate:
    chunk: FoundChunk = hit.source
    raw = inner_product(_finite(hit))
    evidence = Evidence(leg=leg, part="vector", raw=raw, normalised=raw, version=chunk.version, span=chunk)
    document = documents.get(chunk.doc_id)
    return Candidate(doc_id=chunk.doc_id, document=document, facts=document or chunk, evidence=(evidence,))


def inner_product(score: float) -> float:
    """What the engine's score of one is made of: 1 + it, below 0 1 / (1 - it) (Lucene, MAXIMUM_INNER_PRODUCT)."""
    return score - 1 if score >= 1 or score <= 0 else 1 - 1 / score


def _finite(hit: SearchHit) -> float:
    """A score that is none counts as the lowest, with a warning."""
    score = hit.score
    if score is None or not math.isfinite(score):
        log.warning("search.score_refused", row_id=hit.row_id)
        return 0.0
    return score
