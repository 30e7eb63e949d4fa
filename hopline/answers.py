"""What the query service answers, typed. Fields that a newer service adds are ignored."""

from __future__ import annotations

import msgspec


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """text[start:end] of the document, code points."""

    text: str
    start: int
    end: int


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the query, or a part of it, and the fields that hold it."""

    term: str
    part_of: str | None
    fields: list[str]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """normalised · weight = contribution; a hit's contributions add up to its score."""

    leg: str
    part: str
    raw_score: float
    normaliser: str
    normalised: float
    weight: float
    contribution: float
    matched_terms: list[str]
    matches: list[Match] = []
    heading_path: list[str]
    start: int | None
    end: int | None


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    doc_id: str
    path: str
    title: str
    abstract: str
    score: float
    excerpt: Excerpt | None
    stale_excerpt: str | None
    reasons: list[Reason]
    tags: list[str]
    doc_type: str
    source: str
    scope: str
    updated_at: str | None


class StageTrace(msgspec.Struct, frozen=True, kw_only=True):
    stage: str
    on: bool
    candidates_in: int
    candidates_out: int
    ms: float


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    embedding_model: str | None
    candidate_depth: int
    keyword_hits: int
    vector_hits: int
    filter_mode: str
    query_words_left_out: int
    query_vector_cached: bool
    steps_ms: dict[str, float]
    stages: list[StageTrace]


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    hits: list[Hit]
    #: Documents that were ranked, not a count of all matches.
    candidates: int
    #: False: no document holds a word of the query. None: words weren't asked for.
    words_found: bool | None = None
    next_cursor: str | None
    trace: Trace | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
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
    size: int
    left_out_bytes: int
    no_vector_reason: str | None
    warnings: list[str]
    created_at: str | None
    updated_at: str | None
    indexed_at: str
    moved_from: str | None
    version: int


class ContentPage(msgspec.Struct, frozen=True, kw_only=True):
    doc_id: str
    path: str
    content_hash: str
    start: int
    end: int
    #: `start` of the following page; None at the end.
    next: int | None
    total_chars: int
    text: str
    warnings: list[str]


class DocumentName(msgspec.Struct, frozen=True, kw_only=True):
    doc_id: str
    title: str
    path: str


class LinkPlace(msgspec.Struct, frozen=True, kw_only=True):
    start: int
    end: int
    display: str | None
    context: str
    heading: str | None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    link_type: str
    to: DocumentName | None
    ambiguous: bool
    occurrences: list[LinkPlace]


class LinkPage(msgspec.Struct, frozen=True, kw_only=True):
    links: list[Link]
    next_cursor: str | None


class Backlink(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    from_: DocumentName
    target: str
    link_type: str
    ambiguous: bool
    occurrences: list[LinkPlace]


class BacklinkPage(msgspec.Struct, frozen=True, kw_only=True):
    links: list[Backlink]
    next_cursor: str | None


class FieldFault(msgspec.Struct, frozen=True, kw_only=True):
    field: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldFault] = []
