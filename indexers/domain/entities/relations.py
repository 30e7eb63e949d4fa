"""Relations as somebody states them, each with a quote from the document that says so. Pure.

A statement is one event, and one line of `.hopline/relations.jsonl`. Which relations a document has follows from all
statements about its path and from its present text, never from the order in which they arrived.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID, uuid5

import msgspec

from indexers.domain.entities.evidence import NAME_MAX_CHARS, QUOTE_MAX_CHARS
from indexers.domain.entities.names import name_key
from indexers.domain.identity import (
    SEPARATOR,
    AgentId,
    DocumentKey,
    EntityNamespace,
    Namespace,
    RelationId,
    Scope,
    TeamId,
    TenantId,
    check_label,
    relation_id,
)

RelationKind = Literal["related", "unrelated"]
KINDS: Final[tuple[RelationKind, ...]] = get_args(RelationKind)
TYPE_MAX_CHARS: Final = 64
EVENT_ID_MAX_CHARS: Final = 128
#: Words of small letters (of any script) and digits, joined by '_' or '-': owns, on-call_for, 소유.
_TYPE = re.compile(r"[^\W\d_][^\W_]*(?:[_-][^\W_]+)*")
_COPIES: Final = UUID("0f5d0f0b-9f0c-5c55-8a5f-2a3f6f3f9d11")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """`related` states a relation, `unrelated` takes it back; of one relation the newest counts."""

    schema_version: int = 1
    event_id: str
    tenant_id: str
    agent_id: str
    scope: Scope
    team_id: str | None = None
    occurred_at: str
    version: int
    path: str
    kind: RelationKind
    subject: str
    subject_label: str
    relation_type: str
    object: str
    object_label: str
    #: Of `related`; in a taking back it says nothing and may be empty.
    quote: str = ""
    by: str
    #: Event id of the statement whose copy this is: the document was moved to `path`.
    copied_from: str | None = None

    @property
    def document(self) -> DocumentKey:
        return Namespace(
            tenant_id=TenantId(self.tenant_id),
            agent_id=AgentId(self.agent_id),
            scope=self.scope,
            team_id=None if self.team_id is None else TeamId(self.team_id),
        ).document(self.path)

    @property
    def order(self) -> tuple[int, str]:
        return (self.version, self.event_id)

    @property
    def origin(self) -> str:
        return self.copied_from or self.event_id

    @property
    def relation_id(self) -> RelationId:
        """Of the names as they are compared: two spellings of one name state one relation."""
        document = self.document
        owner = EntityNamespace.of(document.namespace)
        subject = owner.name_id(self.subject_label, name_key(self.subject, self.subject_label))
        other = owner.name_id(self.object_label, name_key(self.object, self.object_label))
        return relation_id(document.doc_id, subject, self.relation_type, other)


def check_statement(statement: Statement) -> None:
    """Raises ValueError, its text names the field."""
    _ = statement.document
    datetime.fromisoformat(statement.occurred_at)
    if not 0 < len(statement.event_id) <= EVENT_ID_MAX_CHARS:
        msg = f"event_id: give 1 to {EVENT_ID_MAX_CHARS} characters"
        raise ValueError(msg)
    check_label(statement.by)
    _check_name("subject", statement.subject, statement.subject_label)
    _check_name("object", statement.object, statement.object_label)
    _check_type(statement.relation_type)
    if len(statement.quote) > QUOTE_MAX_CHARS or (
        statement.kind == "related" and not statement.quote.strip()
    ):
        msg = f"quote: give the words of the document that say so, at most {QUOTE_MAX_CHARS} characters"
        raise ValueError(msg)


def newest(statements: Iterable[Statement]) -> dict[RelationId, Statement]:
    """The last word on each relation of one document."""
    found: dict[RelationId, Statement] = {}
    for statement in statements:
        row_id = statement.relation_id
        present = found.get(row_id)
        if present is None or present.order < statement.order:
            found[row_id] = statement
    return found


def copies(of: Iterable[Statement], path: str, present: Iterable[Statement]) -> list[Statement]:
    """The last words on a document that was moved to `path`, as words on that; none that stands there already.

    Their ids follow from the first statement's and the path: repeating a move, or moving to and fro, adds nothing.
    """
    origins = {statement.origin for statement in present}
    return [
        msgspec.structs.replace(
            statement,
            path=path,
            event_id=str(uuid5(_COPIES, SEPARATOR.join((statement.origin, path)))),
            copied_from=statement.origin,
        )
        for statement in newest(of).values()
        if statement.origin not in origins
    ]


def by_path(statements: Iterable[Statement]) -> Mapping[str, tuple[Statement, ...]]:
    """Path as documents have it → statements about it."""
    found: dict[str, list[Statement]] = {}
    for statement in statements:
        found.setdefault(statement.document.path, []).append(statement)
    return {path: tuple(members) for path, members in found.items()}


def _check_name(field: str, name: str, label: str) -> None:
    try:
        check_label(label)
    except ValueError as exc:
        msg = f"{field}_label: {label!r} is no label: give letters, digits, '_', '.' and '-'"
        raise ValueError(msg) from exc
    if len(name) > NAME_MAX_CHARS or not name_key(name, label):
        msg = (
            f"{field}: {name[:80]!r} is no name: give letters or digits, at most {NAME_MAX_CHARS} characters"
        )
        raise ValueError(msg)


def _check_type(name: str) -> None:
    plain = unicodedata.is_normalized("NFC", name) and name == name.lower()
    if not (plain and len(name) <= TYPE_MAX_CHARS and _TYPE.fullmatch(name)):
        msg = (
            f"relation_type: {name[:80]!r} is no type: give small letters, words joined by '_' or '-', "
            f"at most {TYPE_MAX_CHARS} characters (owns, leads, on_call_for)"
        )
        raise ValueError(msg)
