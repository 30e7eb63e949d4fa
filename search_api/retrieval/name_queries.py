"""Bodies of the searches for what the query names: mentions, names, titles, paths, ids. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from indexers.domain.names import alias_key, fold
from indexers.domain.title_names import lookup_key, name_of
from indexers.opensearch.visibility import Query, living
from search_api.requests import SearchFilters
from search_api.retrieval.candidates import VIEW_FIELDS, FoundMention, FoundName
from search_api.retrieval.queries import document_filters, row_filters
from search_api.retrieval.router import Names, Route

#: Rows of names, and of documents that the query names.
NAMED_MAX: Final = 64
#: Of a phrase's BM25, which is higher in a shorter field: orders what is otherwise alike and no more.
_SHORT_FIRST: Final = 0.001


def mentions_body(
    names: Names, filters: SearchFilters, *, size: int, doc_ids: Sequence[str] | None
) -> dict[str, Any]:
    """Rows of documents that say one of these names: rare names first, then the most certain."""
    return {
        "query": {
            "bool": {
                "should": [{"term": {"key": key}} for key in names.entity_keys],
                "minimum_should_match": 1,
                "filter": row_filters(filters, doc_ids),
            }
        },
        "size": size,
        "sort": ["_score", {"weight": "desc"}, {"doc_id": "asc"}],
        "_source": list(FoundMention.__struct_fields__),
        "track_total_hits": False,
    }


def names_body(names: Names) -> dict[str, Any]:
    """The names themselves: how many documents say each, and of which entity it is."""
    return {
        "query": {"bool": {"filter": [{"terms": {"key": list(names.entity_keys)}}]}},
        "size": NAMED_MAX,
        "sort": [{"length": "desc"}, {"name_id": "asc"}],
        "_source": list(FoundName.__struct_fields__),
        "track_total_hits": False,
    }


def named_body(route: Route, names: Names, filters: SearchFilters) -> dict[str, Any] | None:
    """Documents whose id, path or title the query says; exact ones first. None: it says none.

    Any number of titles may hold what is quoted. So names that are as quoted come before names whose beginnings are,
    and those before names that hold it; among equals the shortest title, which is the one that holds nothing else.
    """
    quoted = [fold(said) for said in route.quoted]
    beginnings = [lookup_key(name) for said in route.quoted if (name := name_of(said)) is not None]
    clauses = [
        ("ids", {"values": list(route.doc_ids)}, 8.0, bool(route.doc_ids)),
        ("terms", {"path": list(route.paths)}, 8.0, bool(route.paths)),
        ("terms", {"name_key": quoted}, 7.0, bool(quoted)),
        ("terms", {"alias_keys": [alias_key(said) for said in route.quoted]}, 7.0, bool(quoted)),
        ("terms", {"name_keys": beginnings}, 5.0, True),
        *(("multi_match", _as_phrase(said), 4.0, True) for said in route.quoted),
        ("terms", {"name_keys": [key for key in names.title_keys if " " in key]}, 2.0, True),
        ("terms", {"name_keys": [key for key in names.title_keys if " " not in key]}, 1.0, True),
    ]
    asked = [
        {"constant_score": {"filter": {kind: value}, "boost": boost}}
        for kind, value, boost, wanted in clauses
        if wanted and value != {"name_keys": []}
    ]
    if not asked:
        return None
    found: Query = {"must": [{"dis_max": {"queries": asked}}], "filter": document_filters(filters)}
    if quoted:
        found["should"] = [
            {"match_phrase": {"title": {"query": said, "boost": _SHORT_FIRST}}} for said in route.quoted
        ]
    return {
        "query": {"bool": found},
        "size": NAMED_MAX,
        "sort": ["_score", {"doc_id": "asc"}],
        "_source": list(VIEW_FIELDS),
        "track_total_hits": False,
    }


def count_body() -> dict[str, Any]:
    """How many living documents there are for the asker."""
    return {"query": {"bool": {"filter": [living()]}}, "size": 0, "track_total_hits": True}


def _as_phrase(said: str) -> dict[str, Any]:
    return {"query": said, "fields": ["title", "aliases", "path.text"], "type": "phrase"}
