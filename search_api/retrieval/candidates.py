"""What travels through the stages: candidates with their evidence, frozen values.

None can be part of a cycle, so the collector needn't follow them (`gc=False`): a search makes a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from indexers.opensearch.gate import SearchHit
from search_api.graph.model import Step
from search_api.models import EvidencePart, Leg
from search_api.ranking_settings import RankingRules
from search_api.retrieval.router import Route

#: One list of the recall: a part of a leg.
LegPart = tuple[Leg, EvidencePart]


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What ranking needs of a document, as rows of both kinds hold it: owner and `rows.DocumentFacts`."""

    agent_id: str = ""
    team_id: str | None = None
    scope: str = ""
    doc_type: str = "note"
    source: str = "unknown"
    health: float = 1.0
    session: str | None = None
    position: int | None = None
    superseded_by: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    valid_from: str | None = None
    expires_at: str | None = None


class DocumentView(Facts, frozen=True, kw_only=True, gc=False):
    """The part of a document row that a hit shows or needs for ranking and for reading the file."""

    tenant_id: str
    doc_id: str
    path: str
    title: str
    abstract: str
    tags: list[str]
    content_hash: str
    size: int
    left_out_bytes: int
    no_vector_reason: str | None
    version: int
    deleted: bool
    aliases: list[str] = []
    category: str | None = None
    terms: list[str] = []
    health_reasons: list[str] = []
    language: str | None = None

    @classmethod
    def from_source(cls, source: Mapping[str, Any]) -> DocumentView:
        return msgspec.convert(source, cls)


#: Fields of a document row that a hit needs; what the recall asks for.
VIEW_FIELDS = DocumentView.__struct_fields__


class FoundChunk(Facts, frozen=True, kw_only=True, gc=False):
    """A chunk's row as the recall asks for it: of which document and version, and the document's facts."""

    ordinal: int
    #: Code points of the document's text.
    start: int
    end: int
    heading_path: tuple[str, ...]
    doc_id: str
    version: int


CHUNK_FIELDS = FoundChunk.__struct_fields__


class FoundMention(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A mention's row: the document says the name."""

    doc_id: str
    label: str
    key: str
    weight: float
    version: int


class FoundName(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entity's name."""

    name_id: str
    entity_id: str
    label: str
    key: str
    name: str
    mentions: int
    blocked: bool


class DocumentHit(SearchHit, frozen=True, kw_only=True, gc=False):
    source: DocumentView = msgspec.field(name="_source")


class ChunkHit(SearchHit, frozen=True, kw_only=True, gc=False):
    source: FoundChunk = msgspec.field(name="_source")


class MentionHit(SearchHit, frozen=True, kw_only=True, gc=False):
    source: FoundMention = msgspec.field(name="_source")


class NameHit(SearchHit, frozen=True, kw_only=True, gc=False):
    source: FoundName = msgspec.field(name="_source")


class SaidName(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A name that both the query and the document say: it counts idf · weight."""

    label: str
    name: str
    #: Documents that say it.
    documents: int
    idf: float
    weight: float


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a document is a candidate. The recall says what was found, the stages what it is worth."""

    leg: Leg = "documents"
    part: EvidencePart
    raw: float
    #: Version of the document that the row was made of; 0: of no version (the graph's).
    version: int = 0
    span: FoundChunk | None = None
    names: tuple[SaidName, ...] = ()
    #: Of a turn: cosines of its own, of the previous and of the next turn, which `raw` was mixed of.
    turns: tuple[float, ...] = ()
    #: From a seed to the document, of the graph.
    path: tuple[Step, ...] = ()
    normaliser: str = "none"
    #: What the rule divided by, or the place that it counts; 0: neither.
    scale: float = 0.0
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
    #: Of the row, or of a chunk's; None: neither was read.
    facts: Facts | None = None
    #: Sum of the contributions, and that times the factors.
    recall_score: float = 0.0
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the stages need to know beside the candidates."""

    rules: RankingRules
    #: Share of each list that was asked; absent ones keep theirs.
    weights: Mapping[LegPart, float]
    cosine_floor: float
    source_ranks: Mapping[str, int]
    route: Route
    #: Words of the query that the keyword parts asked for.
    words: int = 0
    #: Of the query, as `queries.language_of` tells it; None: it can't be told.
    language: str | None = None
    #: Documents that pass the request's filters; None: the recall has filtered already.
    allowed: frozenset[str] | None = None

    def is_on(self, stage: str) -> bool:
        return stage not in self.rules.stages_off
