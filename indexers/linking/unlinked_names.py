"""What the index knows of names: which exist, who holds them, how many texts say them. A few requests a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from indexers.domain import title_names
from indexers.domain.identity import Namespace, Principal, Scope, TenantId
from indexers.domain.links import Candidate, VisibleScope, visible_scopes
from indexers.linking.targets import FIELDS, candidate_of, scope_clause
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate, GatedSearch, SearchPage
from indexers.opensearch.rows import Index
from indexers.opensearch.visibility import Query

#: Terms of one query, below the engine's limit of 65,536.
TERMS_MAX = 60_000
#: Searches of one request.
SEARCHES_MAX = 200
_BUCKETS_MAX = 65_000

T = TypeVar("T")
#: None: all scopes of the tenant.
Scopes = tuple[VisibleScope, ...] | None


@dataclass(frozen=True, slots=True)
class ScopedName:
    """A name, and the scope in which texts say it."""

    name: str
    scope: VisibleScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A living document and its names."""

    candidate: Candidate
    names: tuple[str, ...]


def own_scope(namespace: Namespace) -> VisibleScope:
    """The scope of the documents themselves; in-degrees are counted by scope."""
    return visible_scopes(namespace)[0]


def readers_of(scope: VisibleScope) -> Scopes:
    """Scopes whose texts may name a document of this one, and which its texts can make common for."""
    return None if scope.scope is Scope.SHARED else (scope,)


def in_scopes(scopes: Scopes) -> list[Query]:
    if scopes is None:
        return []
    clauses = [scope_clause(scope) for scope in scopes]
    return clauses if len(clauses) == 1 else [{"bool": {"should": clauses, "minimum_should_match": 1}}]


def saying(name: str, scopes: Scopes) -> Query:
    """Living documents of these scopes whose text says the name."""
    phrases = [{"match_phrase": {"name_text": phrase}} for phrase in title_names.phrases(name)]
    return {
        "bool": {
            "filter": [
                {"term": {"deleted": False}},
                *in_scopes(scopes),
                {"bool": {"should": phrases, "minimum_should_match": 1}},
            ]
        }
    }


async def existing_keys(
    gate: Gate, tenant_id: TenantId, asked: Sequence[tuple[Scopes, Iterable[str]]]
) -> list[dict[str, int]]:
    """Of each group of lookup keys and heads those that living documents have, and how many documents."""
    parts = [
        (at, scopes, part)
        for at, (scopes, keys) in enumerate(asked)
        for part in _slices(sorted(keys), TERMS_MAX)
    ]
    found: list[dict[str, int]] = [{} for _ in asked]
    while parts:
        bodies = [_keys_body(scopes, keys) for _, scopes, keys in parts]
        pages = await search_all(gate, tenant_id, bodies)
        again: list[tuple[int, Scopes, list[str]]] = []
        for (at, scopes, keys), page in zip(parts, pages, strict=True):
            aggregation = page.aggregations["keys"]
            if aggregation["sum_other_doc_count"]:
                half = len(keys) // 2
                again += [(at, scopes, keys[:half]), (at, scopes, keys[half:])]
                continue
            wanted = set(keys)
            counts = {b["key"]: b["doc_count"] for b in aggregation["buckets"] if b["key"] in wanted}
            found[at].update(counts)
        parts = again
    return found


async def holders_of(
    gate: Gate, tenant_id: TenantId, asked: Sequence[tuple[Scopes, Iterable[str]]]
) -> list[list[Holder]]:
    """Living documents with one of these lookup keys."""
    principal = Principal.pipeline(tenant_id)
    parts = [
        (at, Wanted(principal=principal, index=Index.DOCUMENTS, query=_holding(scopes, part), fields=_FIELDS))
        for at, (scopes, keys) in enumerate(asked)
        for part in _slices(sorted(keys), TERMS_MAX)
    ]
    found: list[list[Holder]] = [[] for _ in asked]
    for (at, _), rows in zip(parts, await find_all(gate, [wanted for _, wanted in parts]), strict=True):
        found[at] += [_holder(row.source) for row in rows]
    return found


async def count_holders(
    gate: Gate, tenant_id: TenantId, asked: Sequence[tuple[Scopes, str]], *, limit: int
) -> list[int]:
    """Documents with this lookup key; any number over `limit` stands for more."""
    bodies = [_count_body(_holding(scopes, [key]), limit) for scopes, key in asked]
    return [page.total for page in await search_all(gate, tenant_id, bodies)]


async def count_sayers(
    gate: Gate, tenant_id: TenantId, asked: Sequence[ScopedName], *, limit: int
) -> dict[ScopedName, int]:
    """Texts of one scope that say the name; any number over `limit` stands for more."""
    bodies = [_count_body(saying(one.name, (one.scope,)), limit) for one in asked]
    pages = await search_all(gate, tenant_id, bodies)
    return {one: page.total for one, page in zip(asked, pages, strict=True)}


async def search_all(
    gate: Gate, tenant_id: TenantId, bodies: Sequence[Query], index: Index = Index.DOCUMENTS
) -> list[SearchPage]:
    """Any number of searches, some hundred a request."""
    principal = Principal.pipeline(tenant_id)
    pages: list[SearchPage] = []
    for part in _slices(bodies, SEARCHES_MAX):
        pages += await gate.search_many(
            [GatedSearch(principal=principal, index=index, body=body) for body in part]
        )
    return pages


_FIELDS = (*FIELDS, "title", "aliases")


def _holder(source: dict[str, Any]) -> Holder:
    names = title_names.names_of(source["title"], source["aliases"])
    return Holder(candidate=candidate_of(source), names=names)


def _holding(scopes: Scopes, keys: Sequence[str]) -> Query:
    terms = {"terms": {"name_keys": list(keys)}}
    return {"bool": {"filter": [{"term": {"deleted": False}}, *in_scopes(scopes), terms]}}


def _keys_body(scopes: Scopes, keys: Sequence[str]) -> Query:
    # Without global ordinals, which each refresh would build anew over all names.
    terms = {"field": "name_keys", "size": _BUCKETS_MAX, "execution_hint": "map"}
    return {"query": _holding(scopes, keys), "size": 0, "aggs": {"keys": {"terms": terms}}}


def _count_body(query: Query, limit: int) -> Query:
    return {"query": query, "size": 0, "terminate_after": limit + 1, "track_total_hits": True}


def _slices(items: Sequence[T], size: int) -> list[list[T]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
