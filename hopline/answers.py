"""What the query service answers, typed. Fields that a newer service adds are ignored."""

from __future__ import annotations

from typing import Any

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


class SaidName(msgspec.Struct, frozen=True, kw_only=True):
    """A name that the query and the document say; it counts idf · weight."""

    label: str
    name: str
    documents: int
    idf: float
    weight: float


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A document, or a name of an entity."""

    title: str
    doc_id: str | None = None
    path: str | None = None
    label: str | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """One edge of a path through the graph, as walked."""

    kind: str
    from_: Node
    to: Node
    backward: bool
    weight: float
    #: The sentence that says it.
    context: str | None


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: float
    inputs: dict[str, Any]


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """What was read out of the query."""

    kind: str
    said: str
    effect: str


class GraphTrace(msgspec.Struct, frozen=True, kw_only=True):
    edges: int
    names: int
    documents: int
    stale: int
    truncated: dict[str, int]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """normalised · weight = contribution; a hit's score is the sum of them times its factors."""

    leg: str
    part: str
    raw_score: float
    normaliser: str
    normalised: float
    weight: float
    contribution: float
    scale: float = 0.0
    matched_terms: list[str]
    matches: list[Match] = []
    heading_path: list[str]
    start: int | None
    end: int | None
    names: list[SaidName] = []
    path: list[Step] = []


class DocumentLine(msgspec.Struct, frozen=True, kw_only=True):
    """What every document is shown with."""

    doc_id: str
    path: str
    title: str
    abstract: str


class Hit(DocumentLine, frozen=True, kw_only=True):
    score: float
    excerpt: Excerpt | None
    stale_excerpt: str | None
    reasons: list[Reason]
    factors: list[Factor] = []
    health: float = 1.0
    health_reasons: list[str] = []
    #: superseded, expired, not_yet_valid; None: valid now.
    invalid: str | None = None
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
    cosine_floor: float | None = None
    turn_previous: float | None = None
    turn_next: float | None = None
    round_trips: int = 0
    recognised: list[Recognised] = []
    lists: dict[str, int] = {}
    weights: dict[str, float] = {}
    graph: GraphTrace | None = None


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    hits: list[Hit]
    #: Documents that were ranked, not a count of all matches.
    candidates: int
    #: False: no document holds a word of the query. None: words weren't asked for.
    words_found: bool | None = None
    next_cursor: str | None
    trace: Trace | None = None


class ContextExcerpt(Excerpt, frozen=True, kw_only=True):
    heading_path: list[str]


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    """text[start:end] stands in an excerpt of the document `shown_in` already."""

    start: int
    end: int
    shown_in: str


class WayToRead(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str


class ContextDocument(DocumentLine, frozen=True, kw_only=True):
    #: As it stands in the context's text.
    number: int
    score: float
    content_hash: str
    excerpts: list[ContextExcerpt]
    repeats: list[Repeat]
    no_excerpt: str | None
    read: WayToRead


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """`text` has exactly `tokens` tokens by `tokenizer`, never more than the budget."""

    text: str
    tokens: int
    budget_tokens: int
    tokenizer: str
    documents: list[ContextDocument]
    #: Documents that were found, for whose line was no room.
    left_out: int
    candidates: int
    words_found: bool | None


class Paged(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list; `next_cursor` asks for the following one, None at the end."""

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
