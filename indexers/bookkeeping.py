"""Rows without a text: what stays of a deleted document, and what the gate remembers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from indexers.opensearch.rows import DocumentRow, GateRow, owner_fields
from indexers.planning import Seen

#: In `no_vector_reason` of a fence.
ERASED: Final = "erased"


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
