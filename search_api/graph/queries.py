"""Bodies of a hop's searches. Pure. The gate adds tenant and scope to each.

Fairness without a search per node: a hop asks for the edges to all its nodes at once, and the engine scores a `term`
clause on these columns by its inverse document frequency (`use_similarity` in their mapping). By score alone, the
edges of the least connected nodes come first, and once the page is full the engine skips a hub's thousands of rows
without looking at them. What a page holds of its last node may be some part of the node's edges, so one row more than
a page is asked for: where it comes, `whole_nodes` leaves its node out. How many rows other tenants have shifts only
what an overfull page cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indexers.opensearch.gate import SearchHit
from indexers.opensearch.visibility import Query, living
from search_api.graph import columns
from search_api.graph.model import GraphRules, SeedRow

_SCORE = {"_score": {"order": "desc"}}
_TARGETED: Query = {"exists": {"field": "to_doc_id"}}
#: Namespaces and labels that may hold one normalised name.
_NAMESAKES = 8
#: Rows for each that the caps keep: some nodes have fewer than their cap, and theirs come first.
_ROOM = 2
#: And so many in any case: what more documents say than this is too common to lead anywhere.
_ROWS_MIN = 200
#: Below the engine's 1,024 clauses of one query.
_CLAUSES_MAX = 900


def one_by_one(field: str, values: Sequence[str]) -> list[Query]:
    """One scored clause each: see above."""
    return [{"term": {field: {"value": value}}} for value in values[:_CLAUSES_MAX]]


def links_from_body(doc_ids: Sequence[str], rules: GraphRules) -> dict[str, Any]:
    """These documents' links that have a target."""
    return {
        "query": _any_of(one_by_one("from_doc_id", doc_ids), [_TARGETED]),
        "sort": [_SCORE, "from_doc_id", "to_doc_id", "link_type"],
        "size": rules.links_page,
        **columns.LINKS,
    }


def links_to_body(doc_ids: Sequence[str], rules: GraphRules) -> dict[str, Any]:
    """Links to these documents; of several read with `whole_nodes`, of one the first ones."""
    body = {
        "query": _any_of(one_by_one("to_doc_id", doc_ids)),
        "size": rules.links_page + 1,
        **columns.LINKS,
    }
    return body if len(doc_ids) > 1 else {**body, "sort": [_SCORE, "from_doc_id", "link_type"]}


def whole_nodes(hits: Sequence[SearchHit], size: int) -> Sequence[SearchHit]:
    """At most `size`, without the node of the row behind them (or all with as many edges): others may be missing."""
    if len(hits) <= size:
        return hits
    last = hits[-1].score
    return [hit for hit in hits if hit.score != last]


def mentions_in_body(doc_ids: Sequence[str], rules: GraphRules) -> dict[str, Any]:
    """What these documents mention: of one the most certain first."""
    return {
        "query": _any_of(one_by_one("doc_id", doc_ids)),
        "sort": [_SCORE, {"weight": "desc"}, "doc_id", "name_id"],
        "size": min(rules.mentions_page, _ROOM * rules.names_per_document * len(doc_ids)),
        **columns.MENTIONS,
    }


def mentions_of_body(keys: Sequence[str], rules: GraphRules) -> dict[str, Any]:
    """Who mentions names of these keys, of any label; read with `whole_nodes`."""
    room = max(_ROWS_MIN, _ROOM * rules.documents_per_name * len(keys))
    return {
        "query": _any_of(one_by_one("key", keys)),
        "size": min(rules.mentions_page, room) + 1,
        **columns.MENTIONS,
    }


def names_body(keys: Sequence[str], entity_ids: Sequence[str], rules: GraphRules) -> dict[str, Any]:
    """Rows of names by key, and all names of these entities, the most used first."""
    clauses: list[Query] = [{"terms": {field: list(some)}} for field, some in _given(keys, entity_ids)]
    return {
        "query": {"bool": {"filter": [_any_of(clauses)]}},
        "sort": [{"mentions": "desc"}, "name_id"],
        "size": min(rules.mentions_page, _NAMESAKES * (len(keys) + rules.names_max * len(entity_ids))),
        **columns.NAMES,
    }


def relations_body(doc_ids: Sequence[str], name_ids: Sequence[str], rules: GraphRules) -> dict[str, Any]:
    """Said by these documents, or with one of these names at either end."""
    half = _CLAUSES_MAX // 3
    clauses = [
        *one_by_one("doc_id", doc_ids[:half]),
        *one_by_one("subject_id", name_ids[:half]),
        *one_by_one("object_id", name_ids[:half]),
    ]
    return {
        "query": _any_of(clauses),
        "sort": [_SCORE, "doc_id", "subject_id", "relation_type", "object_id"],
        "size": rules.relations_page,
        **columns.RELATIONS,
    }


def rows_body(doc_ids: Sequence[str]) -> dict[str, Any]:
    """The documents' own fields."""
    return {
        "query": {"bool": {"filter": [living(), {"terms": {"doc_id": list(doc_ids)}}]}},
        "size": len(doc_ids),
        **columns.DOCUMENTS,
    }


def count_body() -> dict[str, Any]:
    """How many documents live: without hits, so that the engine may keep the answer."""
    return {
        "query": {"bool": {"filter": [living()]}},
        "size": 0,
        "_source": False,
        "track_total_hits": True,
    }


def alike_body(doc_id: str, row: SeedRow, rules: GraphRules) -> dict[str, Any] | None:
    """Documents like this one; which rules make them so is told by the clauses' names. None: nothing to be like.

    Those that share most come first.
    """
    clauses: list[Query] = []
    for name, values, least in (
        ("tags", row.tags, rules.shared_tags),
        ("terms", row.terms, rules.shared_terms),
    ):
        if len(values) >= least > 0:
            shared = {"should": one_by_one(name, values), "minimum_should_match": least, "_name": name}
            clauses.append({"bool": shared})
    if row.category is not None:
        clauses.append({"term": {"category": {"value": row.category, "_name": "category"}}})
    if not clauses:
        return None
    query = _any_of(clauses, [living()])
    query["bool"]["must_not"] = [{"term": {"doc_id": doc_id}}]
    return {
        "query": query,
        "sort": [_SCORE, "doc_id"],
        "size": rules.neighbours_max,
        **columns.columns_of(columns.DocumentColumns),
    }


def turns_body(turns: Sequence[str], agent_ids: Sequence[str]) -> dict[str, Any]:
    """Of these agents: any number of others may call a session the same."""
    owned: list[Query] = [{"terms": {"turn": list(turns)}}, {"terms": {"agent_id": list(agent_ids)}}]
    return {
        "query": {"bool": {"filter": [living(), *owned]}},
        "sort": ["turn", "doc_id"],
        "size": 4 * len(turns),
        **columns.DOCUMENTS,
    }


def _any_of(clauses: Sequence[Query], filters: Sequence[Query] = ()) -> Query:
    found: Query = {"bool": {"should": list(clauses), "minimum_should_match": 1}}
    if filters:
        found["bool"]["filter"] = list(filters)
    return found


def _given(keys: Sequence[str], entity_ids: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    return [(field, some) for field, some in (("key", keys), ("entity_id", entity_ids)) if some]
