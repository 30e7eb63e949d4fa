"""Requests and answers of the REST routes; OpenAPI is made from them."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from indexers.domain.identity import Scope

#: White space in a pasted query; every other control character is a mistake or an attack.
_BLANK_CONTROLS = frozenset("\t\n\r")


def clean_text(value: str) -> str:
    """NFC; refuses lone surrogates and control characters, which no stored text can match."""
    for char in value:
        category = unicodedata.category(char)
        if category == "Cs" or (category == "Cc" and char not in _BLANK_CONTROLS):
            msg = "control characters and lone surrogates are not allowed"
            raise ValueError(msg)
    return unicodedata.normalize("NFC", value)


def clean_query(value: str) -> str:
    text = " ".join(clean_text(value).split())
    if not text:
        msg = "the query is empty"
        raise ValueError(msg)
    return text


def parse_moment(value: Any) -> datetime:
    """ISO 8601 text → UTC; without an offset it is UTC."""
    if not isinstance(value, str):
        msg = "give a date or time as ISO 8601 text"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns ValueError into a named field
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        msg = "not an ISO 8601 date or time, such as 2031-04-05 or 2031-04-05T09:30:00+09:00"
        raise ValueError(msg) from exc


Part = Literal["keyword", "vector"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
Name = Annotated[str, Field(min_length=1, max_length=512), AfterValidator(clean_text)]
Moment = Annotated[datetime, BeforeValidator(parse_moment)]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchFilters(Request):
    """Kinds are joined by AND, the values of one list by OR."""

    tags: list[Name] = Field([], max_length=100, description="Documents with any of these tags.")
    doc_type: list[Name] = Field([], max_length=20, description="Documents of any of these types.")
    path_prefix: Annotated[str, Field(max_length=4_096), AfterValidator(clean_text)] | None = Field(
        None, description="Documents whose path begins with this, upper and lower case as written."
    )
    scope: list[Annotated[Scope, Field(strict=False)]] = Field(
        [], max_length=3, description="Only these scopes."
    )
    updated_from: Moment | None = Field(None, description="Updated at this time or later (ISO 8601).")
    updated_before: Moment | None = Field(None, description="Updated before this time (ISO 8601).")


class SearchRequest(Request):
    query: Annotated[str, AfterValidator(clean_query)] = Field(
        description="What to look for, as plain text: no character of it is an operator."
    )
    filters: SearchFilters = Field(SearchFilters(), description="Which documents may be found.")
    parts: list[Part] = Field(
        ["keyword", "vector"], min_length=1, max_length=2, description="Which parts of the retrieval to use."
    )
    page_size: int | None = Field(
        None, ge=1, description="Hits of a page; the setting's default when left out."
    )
    cursor: Annotated[str, Field(max_length=1_024)] | None = Field(
        None, description="`next_cursor` of the page before, with the same query, filters and parts."
    )
    explain: bool = Field(default=False, description="Add the trace: every stage with its counts and time.")


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class ExcerptAnswer(Answer):
    text: str
    start: int = Field(description="Offset of the first code point in the document's text.")
    end: int = Field(description="Offset after the last code point.")


class ReasonAnswer(Answer):
    """normalised · weight = contribution; the contributions of a hit add up to its score."""

    leg: str
    part: Part
    raw_score: float
    normaliser: str
    normalised: float
    weight: float
    contribution: float
    matched_terms: list[str]
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
    link_type: str
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
    link_type: str
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
