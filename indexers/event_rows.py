"""Rows of the events index: how far a memory write is, its document before that is indexed, a caller's own key. Pure.

`{event_id}` is the accepted event, `{event_id}/{stage}` a later stage of it (`linked` and `failed` with their part).
`doc/{doc_id}` says whose a document is and where, until its row does. `idem/{digest}` is the event that a caller's
idempotency key stands for; it outlives an erasure, without any text, so that no repetition brings the text back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from indexers.domain.identity import SEPARATOR, DocumentKey, Principal, TenantId
from indexers.opensearch.calls import RowWrite, StoredRow
from indexers.opensearch.rows import EventRow, Index, owner_fields, owner_of

#: Days for which the rows are kept: as long as the topics keep the events (`streams.topics`).
KEPT_DAYS: Final = 7
POINTER: Final = "pointer"
KEY: Final = "key"
#: Of a key whose document is erased.
ERASED_KEY: Final = "erased_key"


_EMPTIED: Final[dict[str, Any]] = {"term": {"stage": ERASED_KEY}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An event that somebody may ask for, and the document that it is about."""

    event_id: str
    document: DocumentKey
    version: int


def stage_id(event_id: str, stage: str, part: str | None = None) -> str:
    if stage == "accepted":
        return event_id
    return f"{event_id}/{stage}" if part is None else f"{event_id}/{stage}/{part}"


def pointer_id(doc_id: str) -> str:
    return f"doc/{doc_id}"


def key_id(principal: Principal, key: str) -> str:
    """Of one agent's own keys: another agent's equal key is another one."""
    said = SEPARATOR.join((principal.tenant_id, principal.agent_id, key))
    return f"idem/{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()}"


def events_with_text(doc_ids: Sequence[str]) -> dict[str, Any]:
    """Query for the rows of these documents that an erasure removes, or empties where they are keys."""
    return {"bool": {"filter": [{"terms": {"doc_id": list(doc_ids)}}], "must_not": [_EMPTIED]}}


def emptied_key(key: StoredRow, tenant_id: TenantId) -> RowWrite:
    """Of the stored row of a key: without the path, and without the hash, from which a short text can be guessed."""
    source = key.source
    row = EventRow(
        **owner_fields(owner_of(tenant_id, source)),
        event_id=source["event_id"],
        stage=ERASED_KEY,
        at=source["at"],
        doc_id=source["doc_id"],
        path="",
        version=source["version"],
    )
    return RowWrite(
        principal=Principal.pipeline(tenant_id),
        index=Index.EVENTS,
        row_id=key.row_id,
        action="replace_if",
        row=row,
        seq_no=key.seq_no,
        primary_term=key.primary_term,
    )


def stage_row(
    followed: Followed,
    stage: str,
    at: str,
    *,
    part: str | None = None,
    parts: Sequence[str] = (),
    reason: str | None = None,
) -> EventRow:
    """Without the path, which is made of the title: a late or replayed event must not say again what was erased."""
    return EventRow(
        **owner_fields(followed.document.namespace),
        event_id=followed.event_id,
        stage=stage,
        at=at,
        doc_id=followed.document.doc_id,
        path="",
        version=followed.version,
        part=part,
        parts=list(parts),
        reason=reason,
    )


def stage_write(row: EventRow) -> RowWrite:
    """Made once: a repeat changes nothing, so the time is that of the first."""
    principal = Principal.pipeline(TenantId(row.tenant_id))
    row_id = stage_id(row.event_id, row.stage, row.part)
    return RowWrite(principal=principal, index=Index.EVENTS, row_id=row_id, action="create", row=row)
