"""Which texts say a name, as far as they may matter: all of each scope in which the name isn't common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from indexers.domain.identity import AgentId, Scope, TeamId, TenantId
from indexers.domain.links import VisibleScope
from indexers.linking.unlinked_names import (
    ScopedName,
    own_scope,
    readers_of,
    saying,
    search_all,
)
from indexers.linking.unlinked_rows import SAYER_FIELDS, Sayer, marks_due
from indexers.opensearch.gate import Gate, SearchPage

#: Agents or teams of one answer.
OWNERS_MAX = 10_000
SHARED = VisibleScope(scope=Scope.SHARED)


@dataclass(slots=True)
class FoundSayers:
    """`sayers`: texts to be looked at. `common`: names that too many texts of a scope say."""

    sayers: list[Sayer] = field(default_factory=list)
    common: list[ScopedName] = field(default_factory=list)


async def find_sayers(
    gate: Gate, tenant_id: TenantId, names: Sequence[ScopedName], *, cap: int
) -> FoundSayers:
    """For names that came to or went from a scope, or that a text of it says no more."""
    found = FoundSayers()
    bodies = [_body(one, marks_due(cap)) for one in names]
    left: list[ScopedName] = []
    for one, page in zip(names, await search_all(gate, tenant_id, bodies), strict=True):
        sayers = [Sayer.of(tenant_id, hit.source) for hit in page.hits]
        whole = page.total <= len(page.hits)
        counts = Counter(own_scope(s.key.namespace) for s in sayers) if whole else _counts(page)
        common = {scope for scope, count in counts.items() if count > cap}
        found.common += [ScopedName(one.name, scope) for scope in sorted(common, key=str)]
        if SHARED in common:
            continue
        if whole:
            found.sayers += [s for s in sayers if own_scope(s.key.namespace) not in common]
        else:
            left += [ScopedName(one.name, scope) for scope in counts if scope not in common]
    bodies = [
        {"query": saying(one.name, (one.scope,)), "size": cap, "_source": list(SAYER_FIELDS)} for one in left
    ]
    for page in await search_all(gate, tenant_id, bodies):
        found.sayers += [Sayer.of(tenant_id, hit.source) for hit in page.hits]
    return found


def _body(one: ScopedName, size: int) -> dict[str, Any]:
    owners = {
        "agents": {"terms": {"field": "agent_id", "size": OWNERS_MAX}},
        "teams": {"terms": {"field": "team_id", "size": OWNERS_MAX}},
    }
    return {
        "query": saying(one.name, readers_of(one.scope)),
        "size": size,
        "_source": list(SAYER_FIELDS),
        "track_total_hits": True,
        "aggs": {"scopes": {"terms": {"field": "scope"}, "aggs": owners}},
    }


def _counts(page: SearchPage) -> dict[VisibleScope, int]:
    counts: dict[VisibleScope, int] = {}
    for bucket in page.aggregations["scopes"]["buckets"]:
        match Scope(bucket["key"]):
            case Scope.SHARED:
                counts[SHARED] = bucket["doc_count"]
            case Scope.PERSONAL:
                for owner in bucket["agents"]["buckets"]:
                    scope = VisibleScope(scope=Scope.PERSONAL, agent_id=AgentId(owner["key"]))
                    counts[scope] = owner["doc_count"]
            case Scope.TEAM:
                for owner in bucket["teams"]["buckets"]:
                    scope = VisibleScope(scope=Scope.TEAM, team_id=TeamId(owner["key"]))
                    counts[scope] = owner["doc_count"]
    return counts
