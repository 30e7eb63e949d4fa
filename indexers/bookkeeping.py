"""Rows without a text: what stays of a deleted document, and what the gate remembers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TeamId, TenantId
from indexers.opensearch.calls import RowWrite
from indexers.opensearch.rows import DocumentRow, GateRow, Index, owner_fields
from indexers.planning import Seen

#: In `no_vector_reason` of a fence's document row, and in `versions` of its gate row.
ERASED: Final = "erased"


class Fenced(Protocol):
    """An erased document: its id, its owner, the version of its erasure."""

    @property
    def doc_id(self) -> str: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def team_id(self) -> str | None: ...
    @property
    def scope(self) -> str: ...
    @property
    def version(self) -> int: ...


def fence(seen: Seen, *, indexed_at: str, until: str) -> DocumentRow:
    """What stays of an erased document: a tombstone without its path, so that no event that is replayed revives it."""
    stone = tombstone(seen, indexed_at=indexed_at, until=until)
    return msgspec.structs.replace(stone, path=stone.doc_id, vault_path="", no_vector_reason=ERASED)


def tombstone(seen: Seen, *, indexed_at: str, until: str) -> DocumentRow:
    """What stays of a deleted document: whose it was and how new the deletion is. No text of it."""
    return DocumentRow(
        **owner_fields(seen.document.namespace),
        doc_id=seen.document.doc_id,
        path=seen.document.path,
        vault_path=seen.vault_path,
        path_key="",
        name_key="",
        alias_keys=[],
        title="",
        abstract="",
        doc_type="note",
        source="unknown",
        tags=[],
        category=None,
        aliases=[],
        terms=[],
        language=None,
        content_hash="",
        size=0,
        left_out_bytes=0,
        no_vector_reason="deleted",
        warnings=[],
        created_at=None,
        updated_at=None,
        indexed_at=indexed_at,
        valid_from=None,
        expires_at=None,
        moved_from=None,
        version=seen.version,
        event_id=seen.event_id,
        parser_version="",
        chunker_version="",
        deleted=True,
        tombstone_until=until,
    )


def gate_row(
    seen: Seen,
    *,
    content_hash: str,
    versions: str,
    alias_keys: Sequence[str],
    deleted: bool,
    names: Sequence[str] = (),
) -> GateRow:
    return GateRow(
        **owner_fields(seen.document.namespace),
        doc_id=seen.document.doc_id,
        content_hash=content_hash,
        versions=versions,
        version=seen.version,
        event_id=seen.event_id,
        deleted=deleted,
        alias_keys=list(alias_keys),
        names=list(names),
    )


def fence_rows(document: Fenced, tenant_id: TenantId, *, at: str, until: str) -> list[RowWrite]:
    """Document row and gate row of a fence whose path nobody knows any more."""
    scope = Scope(document.scope)
    namespace = Namespace(
        tenant_id=tenant_id,
        agent_id=AgentId(document.agent_id),
        scope=scope,
        team_id=None if document.team_id is None else TeamId(document.team_id),
    )
    seen = Seen(
        document=namespace.document(document.doc_id),
        vault_path="",
        version=document.version,
        event_id="",
        modified_at=None,
        moved_from=None,
    )
    row = msgspec.structs.replace(
        fence(seen, indexed_at=at, until=until), doc_id=document.doc_id, path=document.doc_id
    )
    gate = gate_row(seen, content_hash="", versions=ERASED, alias_keys=(), deleted=True)
    rows = {Index.DOCUMENTS: row, Index.GATE: msgspec.structs.replace(gate, doc_id=document.doc_id)}
    return [
        RowWrite(
            principal=Principal.pipeline(tenant_id),
            index=index,
            row_id=document.doc_id,
            action="index",
            row=one,
            version=document.version,
        )
        for index, one in rows.items()
    ]
