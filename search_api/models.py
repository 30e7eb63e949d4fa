"""Answers of the REST routes; OpenAPI is made from them."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from search_api.graph.kinds import GraphPart

#: What a request may ask for.
Part = Literal["keyword", "vector", "names", "graph"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
Leg = Literal["documents", "session_summaries", "entities", "graph"]
#: What speaks for a hit.
EvidencePart = Literal["keyword", "vector", "names", "exact"] | GraphPart


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class ExcerptAnswer(Answer):
    text: str
    start: int = Field(description="Offset of the first code point in the document's text.")
    end: int = Field(description="Offset after the last code point.")


class MatchAnswer(Answer):
    """A word of the query that the document holds."""

    term: str = Field(description="The word, or the part of it that matched, folded.")
    part_of: str | None = Field(description="The word of the query, where only a part of it matched.")
    fields: list[str] = Field(description="Where: title, aliases, tags, path, body.")


class SaidNameAnswer(Answer):
    """A name that the query and the document say. It counts idf · weight; their sum is the raw score."""

    label: str
    name: str
    documents: int = Field(description="Documents that say it, as far as the asker sees.")
    idf: float
    weight: float = Field(description="How certain the mention is, 0..1.")


class NodeAnswer(Answer):
    """A document, or a name of an entity."""

    doc_id: str | None = None
    path: str | None = None
    label: str | None = None
    title: str = Field(description="Title of the document, or the name.")


class StepAnswer(Answer):
    model_config = ConfigDict(frozen=True, populate_by_name=True, serialize_by_alias=True)

    kind: str = Field(
        description="wikilink, embed, reference, unlinked_mention, mention, relation, session, tags, category, "
        "terms."
    )
    from_: NodeAnswer = Field(alias="from")
    to: NodeAnswer
    backward: bool = Field(description="Walked against the way that the edge says.")
    weight: float
    context: str | None = Field(description="The sentence that says it; null for what no text says.")


class ReasonAnswer(Answer):
    """normalised · weight = contribution. A hit's score is the sum of its contributions times its factors."""

    leg: Leg
    part: EvidencePart
    raw_score: float
    normaliser: str
    scale: float = Field(description="What the rule divided by, or the place that it counted; 0: neither.")
    normalised: float
    weight: float
    contribution: float
    matched_terms: list[str] = Field(description="The terms of `matches` (keyword part).")
    matches: list[MatchAnswer] = Field(
        description="Which words matched and where (keyword part). Without the file's text (`stale_excerpt`) "
        "the body's words are unknown."
    )
    heading_path: list[str]
    start: int | None = Field(description="Span of the chunk (vector part), code points.")
    end: int | None
    turns: list[float] = Field(
        description="Of a turn of a session: cosines of its own, of the previous and of the next turn, of which "
        "`raw_score` was mixed (vector part)."
    )
    names: list[SaidNameAnswer] = Field(description="Names that the query says too (entities leg).")
    path: list[StepAnswer] = Field(description="How the graph came here, from a hit or a name of the query.")


class FactorAnswer(Answer):
    """What a property of the document makes of the score."""

    name: str = Field(description="health, source, recency, validity, boost.")
    value: float
    inputs: dict[str, Any] = Field(description="What it was made of: docs/explanation/scores.md.")


class HitAnswer(Answer):
    doc_id: str
    path: str
    title: str
    abstract: str
    score: float
    excerpt: ExcerptAnswer | None
    stale_excerpt: str | None = Field(
        description="Why there is no excerpt: changed, gone, unreadable, not_text, no_vault, vault_away."
    )
    reasons: list[ReasonAnswer]
    factors: list[FactorAnswer] = Field(
        description="In the order of multiplication: those other than 1, with `explain` all."
    )
    health: float
    health_reasons: list[str] = Field(description="What lowered it, as `short:-0.4`.")
    invalid: str | None = Field(description="superseded, expired or not_yet_valid; null: valid now.")
    tags: list[str]
    doc_type: str
    source: str
    scope: str
    updated_at: str | None


class StageAnswer(Answer):
    stage: str
    on: bool
    candidates_in: int
    candidates_out: int
    ms: float


class RecognisedAnswer(Answer):
    """Something that was read out of the query. It excludes nothing."""

    kind: str = Field(description="tag, time, quoted, path, id, title, name.")
    said: str
    effect: str = Field(
        description="boost: documents that have it count more; exact: the document comes first."
    )


class GraphTraceAnswer(Answer):
    edges: int
    names: int
    documents: int
    stale: int = Field(description="Edges that were dropped since their document has moved on.")
    truncated: dict[str, int] = Field(description="What caps left out, by cap.")


class TraceAnswer(Answer):
    embedding_model: str | None
    candidate_depth: int
    keyword_hits: int
    vector_hits: int
    filter_mode: str
    query_words_left_out: int = Field(description="Words of a long query that the keyword part left out.")
    query_vector_cached: bool
    cosine_floor: float
    turn_previous: float = Field(description="Share of the previous turn's cosine in a turn's `raw_score`.")
    turn_next: float = Field(description="Share of the next turn's cosine in it.")
    steps_ms: dict[str, float]
    round_trips: int = Field(
        description="Requests to the engine, one after another: what is on its way while the query's vector is made, "
        "or beside another request, is no wait of its own."
    )
    recognised: list[RecognisedAnswer]
    lists: dict[str, int] = Field(description="Rows that each list of the recall had, as `leg/part`.")
    weights: dict[str, float] = Field(description="Share of each list that was asked, as `leg/part`.")
    graph: GraphTraceAnswer | None = Field(description="Null where the graph wasn't walked.")
    stages: list[StageAnswer]


class SearchAnswer(Answer):
    hits: list[HitAnswer]
    candidates: int = Field(
        description="Documents that were ranked, bounded by the candidate depth; no count of all matches."
    )
    words_found: bool | None = Field(
        description="Whether any document holds a word of the query; false: the hits are the nearest in "
        "meaning. Null without the keyword part."
    )
    next_cursor: str | None
    trace: TraceAnswer | None = None


class DocumentAnswer(Answer):
    doc_id: str
    path: str
    title: str
    abstract: str
    doc_type: str
    source: str
    scope: str
    agent: str
    team: str | None
    tags: list[str]
    aliases: list[str]
    category: str | None
    language: str | None
    content_hash: str
    size: int = Field(description="Bytes of the file.")
    left_out_bytes: int = Field(description="Bytes beyond the indexing cap, which search doesn't see.")
    no_vector_reason: str | None
    warnings: list[str]
    created_at: str | None
    updated_at: str | None
    indexed_at: str
    moved_from: str | None
    version: int


class ContentAnswer(Answer):
    doc_id: str
    path: str
    content_hash: str
    start: int
    end: int
    next: int | None = Field(description="`start` of the next page; null at the end.")
    total_chars: int
    text: str
    warnings: list[str] = Field(description="invalid_utf8_replaced: undecodable bytes are shown as U+FFFD.")


class DocumentName(Answer):
    doc_id: str
    title: str
    path: str


class OccurrenceAnswer(Answer):
    start: int
    end: int
    display: str | None
    context: str
    heading: str | None


class LinkAnswer(Answer):
    target: str = Field(description="As written.")
    link_type: str = Field(
        description="wikilink, embed, reference or unlinked_mention (weaker, not written)."
    )
    to: DocumentName | None = Field(description="Null: no visible document has this name yet.")
    ambiguous: bool = Field(description="Several documents fitted; the nearest was taken.")
    occurrences: list[OccurrenceAnswer]


class LinksAnswer(Answer):
    links: list[LinkAnswer]
    next_cursor: str | None


class BacklinkAnswer(Answer):
    model_config = ConfigDict(frozen=True, populate_by_name=True, serialize_by_alias=True)

    from_: DocumentName = Field(alias="from")
    target: str
    link_type: str = Field(
        description="wikilink, embed, reference or unlinked_mention (weaker, not written)."
    )
    ambiguous: bool
    occurrences: list[OccurrenceAnswer]


class BacklinksAnswer(Answer):
    links: list[BacklinkAnswer]
    next_cursor: str | None


class ProblemAnswer(Answer):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[dict[str, str]] = Field([], description="Each wrong field: `field` and `message`.")


class HealthAnswer(Answer):
    status: str
    checks: dict[str, str] = {}
