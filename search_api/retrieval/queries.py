"""Bodies of the searches, in OpenSearch's words. Pure. The gate adds tenant and scope to each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from indexers.domain.frontmatter import normalise_tag
from indexers.domain.names import fold
from indexers.domain.prose import is_stop_word, language
from indexers.opensearch.templates import VECTOR_FIELD
from indexers.opensearch.visibility import Query, living
from search_api.requests import SearchFilters
from search_api.retrieval.candidates import CHUNK_FIELDS, VIEW_FIELDS

#: Where each word is looked for; `.text` analyses a keyword field. BM25 already favours short fields.
WORD_FIELDS = ("title^1.5", "aliases^1.5", "tags.text", "path.text^0.5", "body")
#: Share of a word's scores in other fields that is added to that in its best field.
TIE_BREAKER = 0.3
#: A code stands apart from words: one that is found whole (ORA-01555) goes before any number of parts of it.
CODE_FIELDS = ("title.code^3", "aliases.code^2", "path.code", "body.code")
CODE_BOOST = 10.0
CODES_MAX = 10
#: Telling words from which on the language of a query is told.
LANGUAGE_WORDS = 3
_CODE = re.compile(r"[A-Za-z0-9_]+(?:[-._/:@#+][A-Za-z0-9_]+)*")
_CODE_MARK = re.compile(r"[A-Za-z][-._/:@#+]*\d|\d[-._/:@#+]*[A-Za-z]|\w_\w|\w[.:@#]\w")
#: A search may hold 1,024 clauses; a term makes one per field. What is left over is for the filters.
TERMS_MAX = (900 - CODES_MAX * len(CODE_FIELDS)) // len(WORD_FIELDS)
#: Signs around a word.
_EDGES = re.compile(r"\A\W+|\W+\Z")
#: The scripts and symbols that the analyser takes letter by letter; any other run of letters is one term.
_WIDE = "\u1100-\u11ff\u2000-\u2bff\u2e80-\uffff\U00010000-\U0010ffff"
_TERM = re.compile(f"[{_WIDE}]|[^\\W_{_WIDE}]{{1,255}}")
#: A leg of its own; the documents leg leaves them out.
SUMMARY_TYPE = "session_summary"
_NOT_SUMMARY: Query = {"bool": {"must_not": [{"term": {"doc_type": SUMMARY_TYPE}}]}}
_SUMMARY: Query = {"term": {"doc_type": SUMMARY_TYPE}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The part of a query that the keyword search can hold."""

    text: str
    left_out: int


def fit_words(query: str) -> Words:
    """Each word once, as many as the engine's limit of clauses lets in; a word too long for it is cut."""
    kept: list[str] = []
    room = TERMS_MAX
    words = list(dict.fromkeys(query.split()))
    for word in words:
        terms = list(_TERM.finditer(word))
        if len(terms) > room:
            if room:
                kept.append(word[: terms[room].start()])
            return Words(text=" ".join(kept), left_out=len(words) - len(kept) + (room > 0))
        kept.append(word)
        room -= len(terms)
    return Words(text=" ".join(kept), left_out=0)


def of_leg(*, summaries: bool) -> Query:
    return _SUMMARY if summaries else _NOT_SUMMARY


def keyword_body(query: str, filters: SearchFilters, *, size: int, summaries: bool = False) -> dict[str, Any]:
    """`multi_match`, never `query_string`: no character of the query is an operator.

    Word by word: a document with one word in its title and another in its body holds both. Words that say nothing
    count only where the query has no others.
    """
    text = fit_words(query).text
    wanted: dict[str, Any] = {
        "must": [{"bool": {"should": [_match(word, WORD_FIELDS) for word in telling_words(text)]}}],
        "filter": [*document_filters(filters), of_leg(summaries=summaries)],
    }
    if codes := codes_of(text):
        wanted["should"] = [_match(" ".join(codes), CODE_FIELDS, boost=CODE_BOOST)]
    return {
        "query": {"bool": wanted},
        "size": size,
        "_source": list(VIEW_FIELDS),
        "track_total_hits": False,
    }


def telling_words(text: str) -> list[str]:
    """Without stop words, unless there is nothing else."""
    words = text.split()
    return [word for word in words if not is_stop_word(fold(_EDGES.sub("", word)))] or words


def language_of(words: Sequence[str]) -> str | None:
    """Of a query's telling words, as a note's language is told; a code or a name alone is of none."""
    return language(words) if len(words) >= LANGUAGE_WORDS else None


def codes_of(text: str) -> tuple[str, ...]:
    """`INC-2041`, `v1.2.3`, `payment_retry`; not `on-call` or `and/or`."""
    codes = dict.fromkeys(code for code in _CODE.findall(text) if _CODE_MARK.search(code))
    return tuple(codes)[:CODES_MAX]


def _match(text: str, fields: Sequence[str], *, boost: float = 1.0) -> Query:
    found: Query = {
        "multi_match": {
            "query": text,
            "fields": list(fields),
            "type": "best_fields",
            "tie_breaker": TIE_BREAKER,
            "boost": boost,
        }
    }
    return found


def vector_body(
    vector: Sequence[float],
    filters: SearchFilters,
    *,
    size: int,
    doc_ids: Sequence[str] | None,
    summaries: bool = False,
) -> dict[str, Any]:
    """Filters stand inside the clause: k of those that pass, not what passes of k."""
    inside = [of_leg(summaries=summaries), *row_filters(filters, doc_ids)]
    clause = {"vector": list(vector), "k": size, "filter": {"bool": {"filter": inside}}}
    return {
        "query": {"knn": {VECTOR_FIELD: clause}},
        "size": size,
        "_source": list(CHUNK_FIELDS),
        "track_total_hits": False,
    }


def row_filters(filters: SearchFilters, doc_ids: Sequence[str] | None) -> list[Query]:
    """What rows of chunks and mentions know of their document."""
    inside: list[Query] = []
    if filters.scope:
        inside.append({"terms": {"scope": [scope.value for scope in filters.scope]}})
    if doc_ids is not None:
        inside.append({"terms": {"doc_id": list(doc_ids)}})
    return inside


def matching_ids_body(filters: SearchFilters, *, size: int) -> dict[str, Any]:
    """Ids of the documents that pass, and how many they are, at most one more than `size`."""
    return {
        "query": {"bool": {"filter": document_filters(filters)}},
        "size": size,
        "sort": ["doc_id"],
        "_source": False,
        "track_total_hits": size + 1,
    }


def which_of_body(doc_ids: Sequence[str], filters: SearchFilters) -> dict[str, Any]:
    """Which of these documents pass."""
    body = matching_ids_body(filters, size=len(doc_ids))
    body["query"]["bool"]["filter"] = [*document_filters(filters), {"terms": {"doc_id": list(doc_ids)}}]
    return body


def document_filters(filters: SearchFilters) -> list[Query]:
    """Kinds are joined by AND, values of a kind by OR; tombstones never pass."""
    found: list[Query] = [living()]
    if filters.tags:
        found.append({"terms": {"tags": [normalise_tag(tag) for tag in filters.tags]}})
    if filters.doc_type:
        found.append({"terms": {"doc_type": list(filters.doc_type)}})
    if filters.path_prefix:
        found.append({"prefix": {"path": {"value": filters.path_prefix}}})
    if filters.scope:
        found.append({"terms": {"scope": [scope.value for scope in filters.scope]}})
    span = _span(filters.updated_from, filters.updated_before)
    if span:
        found.append({"range": {"updated_at": span}})
    return found


def needs_documents(filters: SearchFilters) -> bool:
    """Whether a filter speaks of what only the document row knows (a chunk row has scope, but no tags)."""
    return bool(
        filters.tags
        or filters.doc_type
        or filters.path_prefix
        or filters.updated_from
        or filters.updated_before
    )


def _span(start: datetime | None, end: datetime | None) -> dict[str, str]:
    span: dict[str, str] = {}
    if start is not None:
        span["gte"] = start.isoformat()
    if end is not None:
        span["lt"] = end.isoformat()
    return span
