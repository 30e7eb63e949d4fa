"""Answers of the REST routes; OpenAPI is made from them."""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Part = Literal["keyword", "vector"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)


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


class ReasonAnswer(Answer):
    """normalised · weight = contribution; the contributions of a hit add up to its score."""

    leg: str
    part: Part
    raw_score: float
    normaliser: str
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


class TraceAnswer(Answer):
    embedding_model: str | None
    candidate_depth: int
    keyword_hits: int
    vector_hits: int
    filter_mode: str
    query_words_left_out: int = Field(description="Words of a long query that the keyword part left out.")
    query_vector_cached: bool
    steps_ms: dict[str, float]
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
