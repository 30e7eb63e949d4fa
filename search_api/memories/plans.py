"""What a request becomes: events for the log, rows that say they were accepted. Pure: equal input, equal bytes.

So a request that is repeated with its idempotency key sends the very same events, whatever was lost of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import msgspec

from indexers.domain import memory_file
from indexers.domain.entities.evidence import find_quote
from indexers.domain.entities.relations import Statement, check_statement
from indexers.domain.identity import SEPARATOR, DocumentKey, Namespace, Principal, Scope
from indexers.event_rows import KEY, POINTER, key_id, pointer_id, stage_id
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import EventRow, Index, owner_fields
from search_api.memories.answers import EventKind
from search_api.memories.bodies import MemoryBody, MemoryUpdate, RelationBody, body_hash
from search_api.problems import ProblemError, invalid_field
from streams.events import (
    MemoryChange,
    MemoryChanged,
    MemoryWrite,
    PathEvent,
    RelationWritten,
    encode,
    new_event_id,
    now_iso,
)
from streams.producer import OutgoingRecord
from streams.topics import Topics
from streams.versions import VersionClock

#: Fields of an update that are its own; the rest are the file's.
_NOT_OF_THE_FILE = frozenset({"content", "idempotency_key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What is drawn once for a write and kept for its repetitions. Its further events count on from `version`."""

    event_id: str
    version: int
    occurred_at: str

    @classmethod
    def new(cls, clock: VersionClock, further: int) -> Identity:
        identity = cls(event_id=new_event_id(), version=clock.next(), occurred_at=now_iso())
        clock.observe(identity.version + further)
        return identity

    def fields(self, namespace: Namespace) -> dict[str, Any]:
        return {
            "event_id": self.event_id,
            "tenant_id": namespace.tenant_id,
            "agent_id": namespace.agent_id,
            "scope": namespace.scope,
            "team_id": namespace.team_id,
            "occurred_at": self.occurred_at,
            "version": self.version,
        }

    def following(self, what: str, number: int) -> Identity:
        event_id = str(uuid5(UUID(self.event_id), SEPARATOR.join((what, str(number)))))
        return Identity(event_id=event_id, version=self.version + number, occurred_at=self.occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One accepted word. `further`: events that belong to it, in order. `key`: the caller's own, if any."""

    kind: EventKind
    event: MemoryWrite | MemoryChanged
    further: tuple[PathEvent, ...]
    key: str | None
    body_hash: str

    def records(self, topics: Topics) -> list[OutgoingRecord]:
        return [
            OutgoingRecord(topic=topics.memory_writes, key=event.document.record_key, value=encode(event))
            for event in (self.event, *self.further)
        ]

    def rows(self, principal: Principal) -> list[RowWrite]:
        """The caller's key first, then the accepted event, then where a new document will be."""
        event = self.event
        rows = [(stage_id(event.event_id, "accepted"), self._row("accepted", event.namespace))]
        if self.key is not None:
            own = Namespace(tenant_id=principal.tenant_id, agent_id=principal.agent_id, scope=Scope.PERSONAL)
            rows.insert(0, (key_id(principal, self.key), self._row(KEY, own)))
        if isinstance(event, MemoryWrite) and event.updates is None:
            rows.append((pointer_id(event.document.doc_id), self._row(POINTER, event.namespace)))
        return [
            RowWrite(principal=principal, index=Index.EVENTS, row_id=row_id, action="create", row=row)
            for row_id, row in rows
        ]

    def _row(self, stage: str, owner: Namespace) -> EventRow:
        event = self.event
        return EventRow(
            **owner_fields(owner),
            event_id=event.event_id,
            stage=stage,
            at=now_iso() if stage == "accepted" else event.occurred_at,
            doc_id=event.document.doc_id,
            path=event.document.path,
            version=event.version,
            kind=self.kind,
            body_hash=self.body_hash,
            occurred_at=event.occurred_at,
        )


def plan_write(
    identity: Identity,
    namespace: Namespace,
    body: MemoryBody,
    *,
    superseded: DocumentKey | None,
    key: str | None,
    by: str,
    field: str = "body",
) -> Plan:
    """Raises 422 for a relation that can't be one, and for a quote that the content doesn't say.

    `superseded`: what the body names; None also where that is erased by now, so that nothing can be said of it.
    """
    event = MemoryWrite(
        **identity.fields(namespace),
        path=memory_file.path_for(identity.event_id, body.title),
        **_described(body),
        doc_type=body.doc_type,
        tracked=True,
    )
    further: list[PathEvent] = [
        _relation(identity, number, event, relation, by=by, field=f"{field}.relations.{number - 1}")
        for number, relation in enumerate(body.relations, start=1)
    ]
    if superseded is not None:
        following = identity.following("superseded", len(further) + 1)
        further.append(
            MemoryChanged(
                **following.fields(superseded.namespace),
                path=superseded.path,
                kind="superseded",
                superseded_by=event.document.doc_id,
                by=by,
            )
        )
    return Plan(
        kind="write" if body.supersedes is None else "supersede",
        event=event,
        further=tuple(further),
        key=key,
        body_hash=body_hash("write", body),
    )


def further_of(body: MemoryBody) -> int:
    """Events that follow the write."""
    return len(body.relations) + (body.supersedes is not None)


def plan_update(identity: Identity, document: DocumentKey, body: MemoryUpdate, *, key: str | None) -> Plan:
    event = MemoryWrite(
        **identity.fields(document.namespace),
        path=document.path,
        **_described(body),
        updates=sorted(body.model_fields_set - _NOT_OF_THE_FILE),
        tracked=True,
    )
    return Plan(
        kind="update",
        event=event,
        further=(),
        key=key,
        body_hash=body_hash(f"update {document.doc_id}", body),
    )


def plan_change(
    identity: Identity,
    document: DocumentKey,
    change: MemoryChange,
    kind: EventKind,
    *,
    key: str | None,
    by: str,
) -> Plan:
    """`forgotten` or `erased`."""
    event = MemoryChanged(
        **identity.fields(document.namespace), path=document.path, kind=change, by=by, tracked=True
    )
    return Plan(
        kind=kind, event=event, further=(), key=key, body_hash=body_hash(f"{kind} {document.doc_id}", None)
    )


def _described(body: MemoryBody | MemoryUpdate) -> dict[str, Any]:
    return {
        "title": body.title,
        "content": body.content,
        "tags": list(body.tags or []),
        "category": body.category,
        "source": body.source,
        "session": body.session,
        "speaker": body.speaker,
        "position": body.position,
        "valid_from": None if body.valid_from is None else body.valid_from.isoformat(),
        "expires_at": None if body.expires_at is None else body.expires_at.isoformat(),
    }


def _relation(
    identity: Identity, number: int, event: MemoryWrite, body: RelationBody, *, by: str, field: str
) -> RelationWritten:
    following = identity.following("relation", number)
    relation = RelationWritten(
        **following.fields(event.namespace),
        path=event.path,
        kind="related",
        subject=body.subject,
        subject_label=body.subject_label,
        relation_type=body.type,
        object=body.object,
        object_label=body.object_label,
        quote=body.quote,
        by=by,
    )
    try:
        check_statement(msgspec.json.decode(encode(relation), type=Statement))
    except ValueError as exc:
        name, _, message = str(exc).partition(": ")
        name = {"relation_type": "type"}.get(name, name)
        raise ProblemError(invalid_field(f"{field}.{name}", message)) from exc
    if find_quote(event.content, body.quote) is None:
        raise ProblemError(
            invalid_field(f"{field}.quote", "the content doesn't say this; give its very words")
        )
    return relation
