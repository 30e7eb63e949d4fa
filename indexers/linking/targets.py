"""Where links may lead: the living documents that one of their keys names, asked for in one request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TeamId, TenantId
from indexers.domain.links import (
    SCOPE_WIDTH,
    Candidate,
    Resolution,
    VisibleScope,
    resolve,
    target_keys,
    visible_scopes,
)
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index, LinkRow

FIELDS = ("doc_id", "path", "path_key", "name_key", "alias_keys", "scope", "agent_id")
#: Keys of one query, below the engine's limit of 65,536 terms.
KEYS_MAX = 20_000


@dataclass(slots=True)
class TargetMap:
    """Candidates of one namespace by each key that may name them."""

    by_key: defaultdict[tuple[str, str], list[Candidate]] = field(default_factory=lambda: defaultdict(list))

    def add(self, candidate: Candidate) -> None:
        keys = {("path", candidate.path_key), ("name", candidate.name_key)}
        for key in keys | {("alias", alias) for alias in candidate.alias_keys}:
            self.by_key[key].append(candidate)

    def resolve(self, row: LinkRow) -> Resolution:
        keys = keys_of(row)
        found = {c.doc_id: c for key in keys for c in self.by_key.get(key, ())}
        return resolve(
            row.target_key,
            from_path=row.from_path,
            link_type=row.link_type,  # type: ignore[arg-type]  # rows are written from the closed set
            candidates=list(found.values()),
            author=row.agent_id,
        )


def keys_of(row: LinkRow) -> set[tuple[str, str]]:
    wanted = target_keys(row.target_key, from_path=row.from_path, link_type=row.link_type)  # type: ignore[arg-type]
    keys = {("path", key) for key in wanted.path_keys}
    if wanted.name_key is not None:
        keys.add(("name", wanted.name_key))
    if wanted.alias_key is not None:
        keys.add(("alias", wanted.alias_key))
    return keys


def author_of(row: LinkRow) -> Namespace:
    return Namespace(
        tenant_id=TenantId(row.tenant_id),
        agent_id=AgentId(row.agent_id),
        scope=Scope(row.scope),
        team_id=None if row.team_id is None else TeamId(row.team_id),
    )


async def resolve_rows(gate: Gate, tenant_id: TenantId, rows: Sequence[LinkRow]) -> list[Resolution]:
    """What each link resolves to by the documents that a search shows now."""
    groups: defaultdict[tuple[VisibleScope, ...], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        groups[visible_scopes(author_of(row))].append(at)
    principal = Principal.pipeline(tenant_id)
    asked: list[tuple[tuple[VisibleScope, ...], Wanted]] = []
    for scopes, members in groups.items():
        keys = sorted(set().union(*(keys_of(rows[at]) for at in members)))
        for start in range(0, len(keys), KEYS_MAX):
            query = target_query(scopes, keys[start : start + KEYS_MAX])
            asked.append(
                (scopes, Wanted(principal=principal, index=Index.DOCUMENTS, query=query, fields=FIELDS))
            )
    maps: defaultdict[tuple[VisibleScope, ...], TargetMap] = defaultdict(TargetMap)
    for (scopes, _), found in zip(asked, await find_all(gate, [wanted for _, wanted in asked]), strict=True):
        for hit in found:
            maps[scopes].add(candidate_of(hit.source))
    return [maps[visible_scopes(author_of(row))].resolve(row) for row in rows]


def target_query(scopes: Iterable[VisibleScope], keys: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Living documents of these scopes under one of these keys."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for kind, key in keys:
        values[kind].append(key)
    fields = {"path": "path_key", "name": "name_key", "alias": "alias_keys"}
    named = [{"terms": {fields[kind]: found}} for kind, found in sorted(values.items())]
    return {
        "bool": {
            "filter": [
                {"term": {"deleted": False}},
                {"bool": {"should": [scope_clause(s) for s in scopes], "minimum_should_match": 1}},
                {"bool": {"should": named, "minimum_should_match": 1}},
            ]
        }
    }


def candidate_of(source: dict[str, Any]) -> Candidate:
    return Candidate(
        doc_id=source["doc_id"],
        path=source["path"],
        path_key=source["path_key"],
        name_key=source["name_key"],
        alias_keys=tuple(source["alias_keys"]),
        scope_width=SCOPE_WIDTH[Scope(source["scope"])],
        agent_id=source["agent_id"],
    )


def scope_clause(visible: VisibleScope) -> dict[str, Any]:
    terms = [{"term": {"scope": visible.scope.value}}]
    if visible.agent_id is not None:
        terms.append({"term": {"agent_id": visible.agent_id}})
    if visible.team_id is not None:
        terms.append({"term": {"team_id": visible.team_id}})
    return {"bool": {"filter": terms}}
