"""What the query service answers about entities, typed. Fields that a newer service adds are ignored."""

from __future__ import annotations

from typing import Any

import msgspec

from hopline.answers import Paged
from hopline.document_answers import DocumentName


class Name(msgspec.Struct, frozen=True, kw_only=True):
    name_id: str
    name: str
    mentions: int


class EntityFields(msgspec.Struct, frozen=True, kw_only=True):
    """What every entity is shown with."""

    entity_id: str
    name: str
    label: str
    namespace: str
    mention_count: int
    blocked: bool


class EntityLine(EntityFields, frozen=True, kw_only=True):
    #: The alias that the words found, where it isn't the name.
    matched: str | None = None


class Entity(EntityFields, frozen=True, kw_only=True):
    aliases: list[Name]


class EntityPage(Paged, frozen=True, kw_only=True):
    entities: list[EntityLine]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """text[start:end] of the document says a name, in this sentence."""

    start: int
    end: int
    surface: str
    weight: float
    sentence: str


class MentionFields(Place, frozen=True, kw_only=True):
    """The most certain place, and how many there are."""

    count: int
    source: str


class Mention(MentionFields, frozen=True, kw_only=True):
    document: DocumentName
    name_id: str
    places: list[Place]


class MentionPage(Paged, frozen=True, kw_only=True):
    mentions: list[Mention]


class DocumentMention(MentionFields, frozen=True, kw_only=True):
    entity: EntityLine


class DocumentMentionPage(Paged, frozen=True, kw_only=True):
    mentions: list[DocumentMention]


class RelationEnd(msgspec.Struct, frozen=True, kw_only=True):
    entity_id: str | None
    name: str
    label: str


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    subject: RelationEnd
    relation_type: str
    object: RelationEnd
    quote: str
    start: int
    end: int
    document: DocumentName


class RelationPage(Paged, frozen=True, kw_only=True):
    relations: list[Relation]


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str


class CommandState(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    state: str


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    kind: str
    names: list[str]
    name: str | None
    undoes: str | None
    by: str
    at: str
    reason: str | None


class History(msgspec.Struct, frozen=True, kw_only=True):
    history: list[HistoryEntry]


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    proposal_id: str
    label: str
    namespace: str
    entity: EntityLine
    other: EntityLine
    similarity: float
    reason: str


class ProposalPage(Paged, frozen=True, kw_only=True):
    proposals: list[Proposal]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    done: int
    total: int


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    labels: list[dict[str, Any]]
    patterns: list[dict[str, Any]]
    retired: list[str]
    version: int
    updated_by: str | None
    updated_at: str | None
    progress: Progress
    #: Why what is stored can't be used; nothing is extracted until it is mended.
    problem: str | None = None
