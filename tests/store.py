"""A gate on the real engine and rows to put through it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TeamId, TenantId
from indexers.opensearch.connect import connect
from indexers.opensearch.gate import Gate, Observer
from indexers.opensearch.names import IndexNames
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import ChunkRow, DocumentRow, GateRow, LinkRow
from indexers.settings import OpenSearchSettings

DIMENSION = 3
PAIR_ID = "test-space"
DOC_ID = "6d9f6a53-0c1c-5c0e-8a39-0e8f6e1c3a11"
EVENT_ID = "0192f0c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f"


def namespace(
    tenant: str = "acme", agent: str = "ada", scope: str = "shared", team: str | None = None
) -> Namespace:
    return Namespace(
        tenant_id=TenantId(tenant),
        agent_id=AgentId(agent),
        scope=Scope(scope),
        team_id=None if team is None else TeamId(team),
    )


def principal(tenant: str = "acme", agent: str = "ada", *teams: str) -> Principal:
    return Principal(
        tenant_id=TenantId(tenant), agent_id=AgentId(agent), teams=tuple(TeamId(team) for team in teams)
    )


@contextlib.asynccontextmanager
async def opened_gate(
    url: str,
    prefix: str,
    *,
    retry: RetryPolicy | None = None,
    settings: OpenSearchSettings | None = None,
    observe: Observer | None = None,
    ensure: bool = True,
) -> AsyncIterator[Gate]:
    """Indices of the prefix, dropped afterwards. `url` may be a fault proxy's: heal it before the end."""
    settings = settings or OpenSearchSettings()
    gate = Gate(
        connect(settings, url),
        IndexNames(prefix=prefix, dedicated_tenants=settings.dedicated_tenants),
        retry=retry or RetryPolicy(attempts=5),
        settings=settings,
        observe=observe or (lambda _fact: None),
    )
    try:
        if ensure:
            await gate.ensure_indices(dimension=DIMENSION, pair_id=PAIR_ID)
        yield gate
    finally:
        await gate.drop_indices()
        await gate.close()


def owned(ns: Namespace) -> dict[str, Any]:
    return {
        "tenant_id": ns.tenant_id,
        "agent_id": ns.agent_id,
        "team_id": ns.team_id,
        "scope": ns.scope.value,
    }


def document_row(ns: Namespace | None = None, **changes: Any) -> DocumentRow:
    values: dict[str, Any] = {
        "doc_id": DOC_ID,
        "path": "notes/a.md",
        "vault_path": "notes/a.md",
        "path_key": "notes/a.md",
        "name_key": "a",
        "alias_keys": [],
        "title": "A",
        "abstract": "",
        "doc_type": "note",
        "source": "sync",
        "tags": [],
        "category": None,
        "aliases": [],
        "terms": [],
        "language": None,
        "content_hash": "sha256:00",
        "size": 1,
        "left_out_bytes": 0,
        "no_vector_reason": None,
        "warnings": [],
        "created_at": None,
        "updated_at": None,
        "indexed_at": "2026-11-30T00:00:00Z",
        "valid_from": None,
        "expires_at": None,
        "moved_from": None,
        "version": 1,
        "event_id": EVENT_ID,
        "parser_version": "1",
        "chunker_version": "1",
        "deleted": False,
        "tombstone_until": None,
    }
    return DocumentRow(**owned(ns or namespace()), **(values | changes))


def chunk_row(ns: Namespace | None = None, **changes: Any) -> ChunkRow:
    values: dict[str, Any] = {
        "doc_id": DOC_ID,
        "ordinal": 0,
        "start": 0,
        "end": 10,
        "heading_path": ["A", "B"],
        "chunk_hash": "sha256:11",
        "model_id": "test-int8",
        "chunker_version": "1",
        "version": 1,
        "vector": [1.0, 0.0, 0.0],
    }
    return ChunkRow(**owned(ns or namespace()), **(values | changes))


def link_row(ns: Namespace | None = None, **changes: Any) -> LinkRow:
    values: dict[str, Any] = {
        "from_doc_id": DOC_ID,
        "from_path": "notes/a.md",
        "to_doc_id": None,
        "target": "B",
        "target_key": "b",
        "target_name_key": "b",
        "link_type": "wikilink",
        "occurrences": [{"start": 0, "end": 5, "context": "see [[B]]", "display": None, "heading": None}],
        "resolved": False,
        "ambiguous": False,
        "version": 1,
    }
    return LinkRow(**owned(ns or namespace()), **(values | changes))


def gate_row(ns: Namespace | None = None, **changes: Any) -> GateRow:
    values: dict[str, Any] = {
        "doc_id": DOC_ID,
        "content_hash": "sha256:00",
        "versions": "1/1/test-int8",
        "version": 1,
        "event_id": EVENT_ID,
        "deleted": False,
    }
    return GateRow(**owned(ns or namespace()), **(values | changes))
