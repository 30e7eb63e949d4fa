"""Searches that the gate lets through, and how; searches that it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from indexers.domain.identity import AgentId, Principal, TeamId, TenantId
from indexers.errors import RefusedRequest
from indexers.opensearch.guard import guarded_body, guarded_query
from indexers.opensearch.visibility import living, may_see, visible

ADA = Principal(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), teams=(TeamId("ops"),))
WALL = visible(ADA)


def test_the_filter_of_an_agent() -> None:
    assert visible(ADA) == {
        "bool": {
            "filter": [{"term": {"tenant_id": "acme"}}],
            "should": [
                {"term": {"scope": "shared"}},
                {"bool": {"filter": [{"term": {"scope": "personal"}}, {"term": {"agent_id": "ada"}}]}},
                {"bool": {"filter": [{"term": {"scope": "team"}}, {"terms": {"team_id": ["ops"]}}]}},
            ],
            "minimum_should_match": 1,
        }
    }


def test_the_filter_of_tenant_maintenance() -> None:
    assert visible(Principal.pipeline(TenantId("acme"))) == {
        "bool": {"filter": [{"term": {"tenant_id": "acme"}}]}
    }


def test_tombstones_are_hidden_by_a_filter_of_its_own() -> None:
    assert living() == {"term": {"deleted": False}}


@pytest.mark.parametrize(
    ("owner", "seen"),
    [
        ({"tenant_id": "acme", "agent_id": "bob", "team_id": None, "scope": "shared"}, True),
        ({"tenant_id": "acme", "agent_id": "ada", "team_id": None, "scope": "personal"}, True),
        ({"tenant_id": "acme", "agent_id": "bob", "team_id": "ops", "scope": "team"}, True),
        ({"tenant_id": "acme", "agent_id": "bob", "team_id": None, "scope": "personal"}, False),
        ({"tenant_id": "acme", "agent_id": "ada", "team_id": "sre", "scope": "team"}, False),
        ({"tenant_id": "acme", "agent_id": "ada", "team_id": None, "scope": "of tomorrow"}, False),
        ({"tenant_id": "umbra", "agent_id": "ada", "team_id": None, "scope": "shared"}, False),
        ({}, False),
    ],
)
def test_the_same_rule_for_a_row_in_hand(owner: dict[str, Any], *, seen: bool) -> None:
    assert may_see(ADA, owner) is seen


def test_a_body_is_wrapped_and_vectors_stay_out() -> None:
    assert guarded_body({"query": {"match": {"body": "x"}}, "size": 5}, ADA) == {
        "query": {"bool": {"must": [{"match": {"body": "x"}}], "filter": [WALL]}},
        "size": 5,
        "_source": {"excludes": ["vector", "own_vector"]},
        "seq_no_primary_term": True,
    }


def test_a_body_without_query_is_guarded_too() -> None:
    assert guarded_body({}, ADA)["query"] == {"bool": {"must": [{"match_all": {}}], "filter": [WALL]}}


def test_each_knn_clause_carries_the_filter_wherever_it_stands() -> None:
    knn = {"knn": {"vector": {"vector": [1.0], "k": 3}}}
    filtered = {"knn": {"vector": {"vector": [1.0], "k": 3, "filter": {"term": {"doc_id": "d"}}}}}
    query = {"bool": {"should": [{"dis_max": {"queries": [knn]}}, filtered], "must": knn}}
    walled = {"knn": {"vector": {"vector": [1.0], "k": 3, "filter": {"bool": {"filter": [WALL]}}}}}
    inner = {"bool": {"filter": [WALL, {"term": {"doc_id": "d"}}]}}
    narrowed = {"knn": {"vector": {"vector": [1.0], "k": 3, "filter": inner}}}
    assert guarded_query(query, ADA) == {
        "bool": {
            "must": [{"bool": {"should": [{"dis_max": {"queries": [walled]}}, narrowed], "must": walled}}],
            "filter": [WALL],
        }
    }


def test_ids_are_those_of_the_own_tenant() -> None:
    assert guarded_query({"ids": {"values": ["r1"]}}, ADA)["bool"]["must"] == [
        {"ids": {"values": ["acme/r1"]}}
    ]


def nested(depth: int) -> dict[str, Any]:
    query: dict[str, Any] = {"match_all": {}}
    for _ in range(depth):
        query = {"bool": {"must": [query]}}
    return query


@pytest.mark.parametrize(
    "query",
    [
        {"terms": {"doc_id": {"index": "x-documents", "id": "umbra/r", "path": "tags"}}},
        {"terms": {"doc_id": ["a"], "path": ["b"]}},
        {"more_like_this": {"fields": ["body"], "like": [{"_id": "umbra/r"}]}},
        {"script": {"script": "true"}},
        {"script_score": {"query": {"match_all": {}}, "script": {"source": "1"}}},
        {"function_score": {"query": {"match_all": {}}}},
        {"terms_set": {"tags": {"terms": ["a"], "minimum_should_match_script": {"source": "0"}}}},
        {"bool": {"should": [{"wrapper": {"query": "eyJtYXRjaF9hbGwiOiB7fX0="}}]}},
        {"bool": {"must": [{"percolate": {}}]}},
        {"knn": {"vector": {"vector": [1.0], "k": 3, "filter": {"script": {}}}}},
        {"knn": {"vector": {"vector": [1.0], "k": 3, "rescore": {"oversample_factor": 2}}}},
        {"knn": {"vector": [1.0]}},
        {"query_string": {"query": "*"}},
        {"term": {"_id": "umbra/r"}},
        {"match": {"_index": "x"}},
        {"match_all": {}, "match_none": {}},
        {"match": {"body": {"query": "x", "unheard_of": 1}}},
        {"has_child": {}},
        {},
        [],
        "match_all",
        nested(21),
    ],
)
def test_what_cannot_be_guarded_is_refused(query: Any) -> None:
    with pytest.raises(RefusedRequest, match="the gate can't guard"):
        guarded_query(query, ADA)


@pytest.mark.parametrize(
    "body",
    [
        {"suggest": {"s": {"text": "x", "term": {"field": "title"}}}},
        {"script_fields": {}},
        {"rescore": {"window_size": 1, "query": {}}},
        {"runtime_mappings": {}},
        {"derived": {}},
        {"pit": {"id": "x"}},
        {"profile": True},
        {"ext": {}},
        {"indices_boost": []},
        {"aggs": {"all": {"global": {}}}},
        {"aggs": {"all": {"filter": {"match_all": {}}, "aggs": {"deep": {"global": {}}}}}},
        {"aggs": {"odd": {"significant_terms": {"field": "tags"}}}},
        {"aggs": {"odd": {"terms": {"field": "tags", "min_doc_count": 0}}}},
        # The engine reads all of these as 0: terms of other tenants, with no document.
        *[
            {"aggs": {"odd": {"terms": {"field": "tags", "min_doc_count": odd}}}}
            for odd in ("0", "00", "0.0", "-0", 0.4, -0.0, -1, False, True, None, "1", [0])
        ],
        {"aggs": {"odd": {"terms": {"script": {"source": "1"}}}}},
        {"aggs": {"odd": {"scripted_metric": {}}}},
        {"aggs": {"odd": {"top_hits": {"sort": [{"_script": {}}]}}}},
        {"aggs": {"odd": {"filter": {"script": {}}}}},
        {"aggregations": {"x": {"terms": {"field": "tags"}}}},
        {"sort": [{"_script": {"script": "1"}}]},
        {"sort": [{"title": {"nested": {"path": "x"}}}]},
        {"collapse": {"field": "doc_id", "inner_hits": {"name": "x"}}},
        {"post_filter": {"script": {}}},
        {"stored_fields": ["title"]},
        {"stored_fields": "*"},
    ],
)
def test_bodies_with_a_way_around_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RefusedRequest, match="the gate can't guard"):
        guarded_body(body, ADA)


def test_hits_may_come_from_the_columns_alone() -> None:
    body = {"_source": False, "stored_fields": "_none_", "docvalue_fields": ["key"]}
    guarded = guarded_body(body, ADA)
    assert {name: guarded[name] for name in body} == body
    assert guarded["query"] == guarded_query({"match_all": {}}, ADA)


def test_ordinary_extras_pass() -> None:
    body: dict[str, Any] = {
        "query": {"terms_set": {"tags": {"terms": ["a"], "minimum_should_match_field": "size"}}},
        "aggs": {"by": {"terms": {"field": "tags"}, "aggs": {"best": {"top_hits": {"size": 1}}}}},
        "sort": ["_score", {"doc_id": "asc"}, {"version": {"order": "desc"}}],
        "collapse": {"field": "doc_id"},
        "explain": True,
        "_source": ["title"],
    }
    guarded = guarded_body(body, ADA)
    assert {key: guarded[key] for key in body if key != "query"} == {
        key: value for key, value in body.items() if key != "query"
    }


def outcome(query: Any) -> Any:
    """What the gate makes of it, or why it refuses it."""
    try:
        return guarded_query(query, ADA)["bool"]["must"][0]
    except RefusedRequest as refused:
        return str(refused)


@pytest.mark.parametrize(
    "clause",
    [
        {"term": {"key": {"value": "x"}}},
        {"term": {"key": {"value": {"index": "others", "id": "1", "path": "key"}}}},
        {"term": {"key": {"value": "x", "boost": 2}}},
        {"term": {"key": {"value": "x", "script": "1"}}},
        {"term": {"key": {}}},
        {"term": {"key": "x"}},
        {"term": {"_id": {"value": "umbra:1"}}},
        {"term": {"a": {"value": 1}, "b": {"value": 2}}},
        {"term": {}},
        {"term": "x"},
        {"term": {"key": {"value": "x"}}, "script": {"source": "1"}},
        {"script": {"source": "1"}},
        ["term"],
    ],
)
def test_a_clause_among_others_is_guarded_as_one_alone(clause: Any) -> None:
    """Plain terms are passed over in lists: nothing may slip through there that is refused elsewhere."""
    alone = outcome({"bool": {"should": {"bool": {"must": clause}}}})
    among = outcome({"bool": {"should": {"bool": {"must": [clause]}}}})
    if isinstance(alone, str):
        assert among == alone
    else:
        assert among == {"bool": {"should": {"bool": {"must": [clause]}}}}
        assert alone == {"bool": {"should": {"bool": {"must": clause}}}}


def test_a_plain_term_is_no_deeper_than_others_may_be() -> None:
    query: Any = {"bool": {"should": [{"term": {"key": {"value": "x"}}}]}}
    for _ in range(19):
        query = {"bool": {"must": query}}
    assert outcome(query) == query
    assert "nested deeper than 20" in outcome({"bool": {"must": query}})
