"""Which searches pass the gate, and how the principal's filter gets into them. Pure.

What `indexers.opensearch.allowed` doesn't name is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NoReturn

from indexers.domain.identity import Principal
from indexers.errors import RefusedRequest
from indexers.opensearch.allowed import (
    AGGREGATIONS,
    BODY,
    COMPOUND,
    FIELD_QUERIES,
    FLAT_QUERIES,
    KNN,
    METADATA_FIELDS,
    NAMING,
    SORT,
)
from indexers.opensearch.names import stored_id
from indexers.opensearch.templates import VECTOR_FIELDS
from indexers.opensearch.visibility import Query, visible

_VALUE = {"value"}
_MAX_DEPTH = 20


def guarded_body(body: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    """The search with the principal's filter around its query and inside each knn clause."""
    _only(body, BODY, "search body")
    guarded = dict(body)
    guarded["query"] = guarded_query(body.get("query", {"match_all": {}}), principal)
    if "post_filter" in body:
        guarded["post_filter"] = _query(body["post_filter"], principal, 0)
    if "aggs" in body:
        guarded["aggs"] = _aggregations(body["aggs"], principal, 0)
    if "collapse" in body:
        _only(_mapping(body["collapse"], "collapse"), {"field"}, "collapse")
    _check_sort(body.get("sort", []))
    if body.get("stored_fields", "_none_") != "_none_":
        _refuse("stored_fields other than _none_")
    guarded.setdefault("_source", {"excludes": list(VECTOR_FIELDS)})
    guarded["seq_no_primary_term"] = True
    return guarded


def guarded_query(query: Any, principal: Principal) -> Query:
    return {"bool": {"must": [_query(query, principal, 0)], "filter": [visible(principal)]}}


def _query(query: Any, principal: Principal, depth: int) -> Query:
    kind, value = _single(query, "query")
    if depth > _MAX_DEPTH:
        _refuse(f"a query nested deeper than {_MAX_DEPTH}")
    if kind in FIELD_QUERIES:
        _check_field_query(kind, value)
        return {kind: value}
    if kind in FLAT_QUERIES:
        _only(_mapping(value, kind), FLAT_QUERIES[kind], kind)
        return {kind: value}
    if kind in COMPOUND:
        return {kind: _compound(kind, _mapping(value, kind), principal, depth)}
    special = _SPECIAL.get(kind)
    if special is None:
        _refuse(f"query type {kind!r}")
    return {kind: special(_mapping(value, kind), principal, depth)}


def _compound(kind: str, value: Mapping[str, Any], principal: Principal, depth: int) -> dict[str, Any]:
    holders, plain = COMPOUND[kind]
    _only(value, holders | plain, kind)
    return {
        key: _nested(item, principal, depth + 1) if key in holders else item for key, item in value.items()
    }


def _nested(value: Any, principal: Principal, depth: int) -> Any:
    if isinstance(value, list | tuple):
        known = depth <= _MAX_DEPTH
        return [item if known and _is_plain_term(item) else _query(item, principal, depth) for item in value]
    return _query(value, principal, depth)


def _is_plain_term(query: Any) -> bool:
    """`{"term": {field: {"value": …}}}`, as `_query` lets it pass: most of the hundreds of clauses of a hop."""
    if type(query) is not dict or len(query) != 1 or type(term := query.get("term")) is not dict:
        return False
    if len(term) != 1:
        return False
    [(field, parameters)] = term.items()
    return field not in METADATA_FIELDS and type(parameters) is dict and parameters.keys() == _VALUE


def _knn(value: Mapping[str, Any], principal: Principal, depth: int) -> dict[str, Any]:
    """The filter inside the clause: outside, the k nearest could all be others' and the answer empty."""
    field, clause = _single(value, "knn")
    clause = _mapping(clause, "knn")
    _only(clause, KNN, "knn")
    filters = [visible(principal)]
    if "filter" in clause:
        filters.append(_query(clause["filter"], principal, depth + 1))
    return {field: {**clause, "filter": {"bool": {"filter": filters}}}}


def _terms(value: Mapping[str, Any], _principal: Principal, _depth: int) -> dict[str, Any]:
    fields = set(value) - NAMING
    for field in fields:
        _check_field(field)
        if not isinstance(value[field], list | tuple):
            _refuse("a terms query that looks its terms up in a document")
    if len(fields) != 1:
        _refuse("a terms query without exactly one field")
    return dict(value)


def _terms_set(value: Mapping[str, Any], _principal: Principal, _depth: int) -> dict[str, Any]:
    field, clause = _single(value, "terms_set")
    _check_field(field)
    _only(_mapping(clause, "terms_set"), NAMING | {"terms", "minimum_should_match_field"}, "terms_set")
    return dict(value)


def _ids(value: Mapping[str, Any], principal: Principal, _depth: int) -> dict[str, Any]:
    _only(value, NAMING | {"values"}, "ids")
    return {**value, "values": [stored_id(principal.tenant_id, row_id) for row_id in value.get("values", [])]}


_SPECIAL: dict[str, Callable[[Mapping[str, Any], Principal, int], dict[str, Any]]] = {
    "knn": _knn,
    "terms": _terms,
    "terms_set": _terms_set,
    "ids": _ids,
}


def _check_field_query(kind: str, value: Any) -> None:
    field, parameters = _single(value, kind)
    _check_field(field)
    if type(parameters) is dict or isinstance(parameters, Mapping):
        _only(parameters, FIELD_QUERIES[kind], kind)


def _aggregations(aggregations: Any, principal: Principal, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        _refuse(f"aggregations nested deeper than {_MAX_DEPTH}")
    named = _mapping(aggregations, "aggs")
    return {name: _aggregation(_mapping(value, name), principal, depth) for name, value in named.items()}


def _aggregation(value: Mapping[str, Any], principal: Principal, depth: int) -> dict[str, Any]:
    kind, parameters = _single({key: item for key, item in value.items() if key != "aggs"}, "aggregation")
    guarded: dict[str, Any] = {kind: parameters}
    if kind == "filter":
        guarded = {kind: _query(parameters, principal, 0)}
    elif kind not in AGGREGATIONS:
        _refuse(f"aggregation {kind!r}")
    else:
        _only(_mapping(parameters, kind), AGGREGATIONS[kind], kind)
        least = parameters.get("min_doc_count", 1)
        # The engine reads "0" and 0.4 as 0 too.
        if type(least) is not int or least < 1:
            _refuse(f"min_doc_count {least!r}, which may list the terms of rows outside the query,")
        _check_sort(parameters.get("sort", []))
    if "aggs" in value:
        guarded["aggs"] = _aggregations(value["aggs"], principal, depth + 1)
    return guarded


def _check_sort(sort: Any) -> None:
    for item in sort if isinstance(sort, list | tuple) else [sort]:
        if isinstance(item, str):
            continue
        field, order = _single(item, "sort")
        if field in ("_script", "_geo_distance"):
            _refuse(f"sorting by {field}")
        if isinstance(order, Mapping):
            _only(order, SORT, "sort")


def _check_field(field: str) -> None:
    if field in METADATA_FIELDS:
        _refuse(f"a query on {field} (for rows by id there is `ids`)")


def _single(value: Any, what: str) -> tuple[str, Any]:
    items = _mapping(value, what).items()
    if len(items) != 1:
        _refuse(f"{what} with {len(items)} keys where one is due")
    return next(iter(items))


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    # A hop's query has hundreds of clauses, all dicts: for them no abstract class needs to be asked.
    if type(value) is not dict and not isinstance(value, Mapping):
        _refuse(f"{what} that is no object")
    found: Mapping[str, Any] = value
    return found


def _only(value: Mapping[str, Any], allowed: set[str], what: str) -> None:
    if not value.keys() <= allowed:
        _refuse(f"{', '.join(sorted(set(value) - allowed))} in {what}")


def _refuse(what: str) -> NoReturn:
    raise RefusedRequest(HTTPStatus.BAD_REQUEST, "not_guarded", f"the gate can't guard {what} and refuses it")
