"""Who may see a row: the filter that the engine applies, and the same rule over a row in hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indexers.domain.identity import Namespace, Principal, Scope

Query = dict[str, Any]


def visible(principal: Principal) -> Query:
    """Tenant AND (shared OR own personal OR an own team's). Tenant maintenance: the tenant alone."""
    tenant: Query = {"term": {"tenant_id": principal.tenant_id}}
    if principal.sees_whole_tenant:
        return {"bool": {"filter": [tenant]}}
    scopes: list[Query] = [
        {"term": {"scope": Scope.SHARED.value}},
        _both({"term": {"scope": Scope.PERSONAL.value}}, {"term": {"agent_id": principal.agent_id}}),
    ]
    if principal.teams:
        scopes.append(
            _both({"term": {"scope": Scope.TEAM.value}}, {"terms": {"team_id": list(principal.teams)}})
        )
    return {"bool": {"filter": [tenant], "should": scopes, "minimum_should_match": 1}}


def may_see(principal: Principal, owner: Mapping[str, Any]) -> bool:
    """The filter's rule for a row that was read by its id."""
    if owner.get("tenant_id") != principal.tenant_id:
        return False
    if principal.sees_whole_tenant:
        return True
    match owner.get("scope"):
        case Scope.SHARED.value:
            return True
        case Scope.PERSONAL.value:
            return owner.get("agent_id") == principal.agent_id
        case Scope.TEAM.value:
            return owner.get("team_id") in principal.teams
        case _:
            return False


def living() -> Query:
    """Hides tombstones. The gate doesn't add it: ingest must see them."""
    return {"term": {"deleted": False}}


def owned_by(namespace: Namespace, *, deleted: bool | None = None) -> Query:
    """Rows that one root writes, of the living or the deleted or all: a principal sees others' shared rows too."""
    terms: list[Query] = [
        {"term": {"agent_id": namespace.agent_id}},
        {"term": {"scope": namespace.scope.value}},
    ]
    if namespace.team_id is not None:
        terms.append({"term": {"team_id": namespace.team_id}})
    if deleted is not None:
        terms.append({"term": {"deleted": deleted}})
    return {"bool": {"filter": terms}}


def _both(first: Query, second: Query) -> Query:
    return {"bool": {"filter": [first, second]}}
