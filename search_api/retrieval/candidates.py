"""What travels through the stages: candidates with their evidence, frozen values.

None can be part of a cycle, so the collector needn't follow them (`gc=False`): a search makes a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from indexers.opensearch.gate import SearchHit
from search_api.models import Part
from search_api.settings import Fusion

#: Fields of a document row that a hit needs; what the recall asks for.
VIEW_FIELDS = (
    "tenant_id",
    "agent_id",
    "team_id",
    "scope",
    "doc_id",
    "path",
    "title",
    "abstract",
    "aliases",
    "doc_type",
    "source",
    "tags",
    "content_hash",
    "size",
    "left_out_bytes",
    "no_vector_reason",
    "updated_at",
    "version",
    "deleted",
)


class DocumentView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The part of a document row that a hit shows or needs for reading the file."""

    tenant_id: str
    agent_id: str
    team_id: str | None
    scope: str
    doc_id: str
    path: str
    title: str
    abstract: str
    doc_type: str
    source: str
    tags: list[str]
    content_hash: str
    size: int
    left_out_bytes: int
    no_vector_reason: str | None
    updated_at: str | None
    version: int
    deleted: bool
    aliases: list[str] = []

    @classmethod
    def from_source(cls, source: Mapping[str, Any]) -> DocumentView:
        return msgspec.convert(source, cls)


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A chunk of the document, code points."""

    ordinal: int
    start: int
    end: int
    heading_path: tuple[str, ...]


class FoundChunk(Span, frozen=True, kw_only=True, gc=False):
    """A chunk's row as the recall asks for it: the span, of which document and version."""

    doc_id: str
    version: int


class DocumentHit(SearchHit, frozen=True, kw_only=True, gc=False):
    source: DocumentView = msgspec.field(name="_source")


class ChunkHit(SearchHit, frozen=True, kw_only=True, gc=False):
    source: FoundChunk = msgspec.field(name="_source")


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a document is a candidate. The recall says what was found, the stages what it is worth."""

    part: Part
    raw: float
    #: Version of the document that the row was made of.
    version: int
    span: Span | None = None
    normaliser: str = "none"
    #: Until a stage normalises it, the raw score.
    normalised: float
    weight: float = 1.0

    @property
    def contribution(self) -> float:
        return self.normalised * self.weight


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    doc_id: str
    #: None: not looked up yet.
    document: DocumentView | None
    evidence: tuple[Evidence, ...]
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the stages need to know beside the candidates."""

    #: Of the parts that were asked.
    weights: Mapping[Part, float]
    keyword_floor: float
    cosine_floor: float
    #: By scores, or by places alone (reciprocal rank fusion).
    fusion: Fusion = "weighted"
    #: Documents that pass the request's filters; None: the recall has filtered already.
    allowed: frozenset[str] | None = None
    off: frozenset[str] = field(default_factory=frozenset)
