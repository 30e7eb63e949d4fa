"""What the query service answers about memories, their events and what stands around a document, typed.

Fields that a newer service adds are ignored.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from hopline.document_answers import DocumentName

#: How far a change has come; each one includes those before it.
State = Literal["accepted", "ingested", "searchable", "extracted", "linked"]
STATES: Final[tuple[str, ...]] = ("accepted", "ingested", "searchable", "extracted", "linked")
#: What can be waited for.
Milestone = Literal["ingested", "searchable", "linked"]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """accepted, ingested, embedded, extracted or linked, and when (ISO 8601)."""

    stage: str
    at: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    reason: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A change on its way through the pipeline."""

    event_id: str
    doc_id: str
    path: str
    #: write, update, supersede, forget or erase.
    kind: str
    version: int
    #: One of STATES, or where it ended: failed, overtaken (a newer change came first).
    state: str
    stages: list[Stage]
    failure: Failure | None = None

    @property
    def ended(self) -> bool:
        """Nothing more will come of it."""
        return self.state not in STATES or self.state == STATES[-1]

    def reached(self, state: State) -> bool:
        return self.state in STATES and STATES.index(self.state) >= STATES.index(state)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """Taken: the broker has confirmed it. `replayed`: it was, the last time the same key was used."""

    doc_id: str
    event_id: str
    path: str
    version: int
    replayed: bool
    event: Event


class WrittenBatch(msgspec.Struct, frozen=True, kw_only=True):
    memories: list[Written]


class WhoAmI(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the service takes the key's holder for."""

    tenant: str
    agent: str
    teams: list[str] = []
    roles: list[str] = []
    key_id: str | None = None
    #: It may create tenants, and sees no tenant's memory.
    operator: bool = False


class RelatedLine(DocumentName, frozen=True, kw_only=True):
    abstract: str
    doc_type: str
    scope: str


class RelatedReason(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    text: str
    score: float


class Relative(msgspec.Struct, frozen=True, kw_only=True):
    document: RelatedLine
    score: float
    reasons: list[RelatedReason]


class Related(msgspec.Struct, frozen=True, kw_only=True):
    related: list[Relative]


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    #: document or entity.
    kind: str
    title: str
    #: Edges from the document that was asked for.
    hop: int
    path: str | None = None
    doc_type: str | None = None
    label: str | None = None


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    kind: str
    weight: float


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    #: Caps left something out.
    capped: bool
