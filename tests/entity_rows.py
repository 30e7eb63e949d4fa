"""Rows of names, mentions and what people say of them, and `row_of`: some row of any index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from indexers.domain.identity import Namespace
from indexers.opensearch.rows import (
    ControlRow,
    CurationRow,
    EntityRow,
    EventRow,
    ExtractionRow,
    Index,
    MentionRow,
    OwnedRow,
    ProposalRow,
    RelationRow,
)
from tests.store import (
    DOC_ID,
    EVENT_ID,
    chunk_row,
    document_row,
    gate_row,
    link_row,
    namespace,
    owned,
)

NAME_ID = "52a1f0de-6d3b-5b8e-9a44-c70d2f1b8e90"
OTHER_NAME_ID = "0b6a7c1e-1f5a-5d0c-8c2e-3d9e4f6a7b81"
ENTITY_NAMESPACE = "shared"


def entity_row(ns: Namespace | None = None, **changes: Any) -> EntityRow:
    values: dict[str, Any] = {
        "name_id": NAME_ID,
        "likeness_id": NAME_ID,
        "entity_id": NAME_ID,
        "namespace": ENTITY_NAMESPACE,
        "label": "technology",
        "key": "redis",
        "name": "Redis",
        "canonical": True,
        "mentions": 1,
        "mention_count": 1,
        "blocked": False,
        "grams": ["red", "edi", "dis"],
        "block": "r",
        "length": 5,
    }
    return EntityRow(**owned(ns or namespace()), **(values | changes))


def mention_row(ns: Namespace | None = None, **changes: Any) -> MentionRow:
    occurrence = {"start": 4, "end": 9, "surface": "Redis", "weight": 0.9, "sentence": "The Redis failed."}
    values: dict[str, Any] = {
        "doc_id": DOC_ID,
        "path": "notes/a.md",
        "name_id": NAME_ID,
        "namespace": ENTITY_NAMESPACE,
        "label": "technology",
        "key": "redis",
        **occurrence,
        "occurrences": [occurrence],
        "count": 1,
        "source": "model",
        "version": 1,
    }
    return MentionRow(**owned(ns or namespace()), **(values | changes))


def relation_row(ns: Namespace | None = None, **changes: Any) -> RelationRow:
    values: dict[str, Any] = {
        "doc_id": DOC_ID,
        "path": "notes/a.md",
        "namespace": ENTITY_NAMESPACE,
        "subject": "redis",
        "subject_label": "technology",
        "subject_id": NAME_ID,
        "relation_type": "feeds",
        "object": "ledger",
        "object_label": "system",
        "object_id": OTHER_NAME_ID,
        "quote": "Redis feeds the ledger",
        "start": 0,
        "end": 22,
        "version": 1,
    }
    return RelationRow(**owned(ns or namespace()), **(values | changes))


def proposal_row(ns: Namespace | None = None, **changes: Any) -> ProposalRow:
    values: dict[str, Any] = {
        "namespace": ENTITY_NAMESPACE,
        "label": "technology",
        "entity_id": NAME_ID,
        "other_id": OTHER_NAME_ID,
        "key": "redis",
        "other_key": "redix",
        "similarity": 0.8,
        "reason": "similar",
    }
    return ProposalRow(**owned(ns or namespace()), **(values | changes))


def curation_row(ns: Namespace | None = None, **changes: Any) -> CurationRow:
    values: dict[str, Any] = {
        "namespace": ENTITY_NAMESPACE,
        "label": "technology",
        "kind": "merge",
        "keys": ["redis", "redix"],
        "name": None,
        "undoes": None,
        "by": "ada",
        "at": "2026-11-30T00:00:00Z",
        "reason": "a typing error",
        "version": 1,
        "event_id": EVENT_ID,
    }
    return CurationRow(**owned(ns or namespace()), **(values | changes))


def extraction_row(ns: Namespace | None = None, **changes: Any) -> ExtractionRow:
    values: dict[str, Any] = {
        "doc_id": DOC_ID,
        "namespace": ENTITY_NAMESPACE,
        "version": 1,
        "fingerprint": "1/test",
        "mentions": 1,
        "rejected": 0,
    }
    return ExtractionRow(**owned(ns or namespace()), **(values | changes))


def control_row(ns: Namespace | None = None, **changes: Any) -> ControlRow:
    values: dict[str, Any] = {
        "kind": "labels",
        "name": ENTITY_NAMESPACE,
        "value": {"labels": [{"name": "system", "threshold": 0.4}]},
        "version": 1,
        "updated_by": "ada",
        "updated_at": "2026-11-30T00:00:00Z",
    }
    return ControlRow(**owned(ns or namespace()), **(values | changes))


def event_row(ns: Namespace | None = None, **changes: Any) -> EventRow:
    values: dict[str, Any] = {
        "event_id": "0192f0c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f",
        "stage": "accepted",
        "at": "2026-11-30T00:00:00+00:00",
        "doc_id": "d",
        "path": "memories/2026/a-7c8d9e0f.md",
        "version": 1,
        "kind": "write",
        "body_hash": "h",
        "occurred_at": "2026-11-30T00:00:00+00:00",
    }
    return EventRow(**owned(ns or namespace()), **(values | changes))


_ROWS: Mapping[Index, Callable[[Namespace | None], OwnedRow]] = {
    Index.DOCUMENTS: document_row,
    Index.CHUNKS: chunk_row,
    Index.LINKS: link_row,
    Index.GATE: gate_row,
    Index.ENTITIES: entity_row,
    Index.MENTIONS: mention_row,
    Index.RELATIONS: relation_row,
    Index.PROPOSALS: proposal_row,
    Index.CURATION: curation_row,
    Index.EXTRACTIONS: extraction_row,
    Index.CONTROL: control_row,
    Index.EVENTS: event_row,
}


def row_of(index: Index, ns: Namespace | None = None) -> OwnedRow:
    """Some row of the index."""
    return _ROWS[index](ns)
