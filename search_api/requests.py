"""Bodies that callers send, checked and cleaned; OpenAPI is made from them.

Lengths are checked before anything walks through a text: a body may hold a megabyte.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from indexers.domain.frontmatter import DOC_TYPES
from indexers.domain.identity import Scope
from search_api.models import PARTS, Part
from search_api.overlays import partial_of
from search_api.ranking_settings import RankingRules
from search_api.settings import QUERY_MAX_CHARS

#: Categories Cc and Cs, without the white space of a pasted query: a mistake or an attack.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_text(value: str) -> str:
    """NFC; refuses lone surrogates and control characters, which no stored text can match."""
    if _REFUSED.search(value):
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


def known_type(value: str) -> str:
    if value not in DOC_TYPES:
        msg = f"no type of document; the types are: {', '.join(DOC_TYPES)}"
        raise ValueError(msg)
    return value


Name = Annotated[str, Field(min_length=1, max_length=512), AfterValidator(clean_text)]
DocType = Annotated[
    str,
    Field(max_length=512),
    AfterValidator(known_type),
    WithJsonSchema({"type": "string", "enum": list(DOC_TYPES)}),
]
Moment = Annotated[datetime, BeforeValidator(parse_moment)]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchFilters(Request):
    """Kinds are joined by AND, the values of one list by OR."""

    tags: list[Name] = Field([], max_length=100, description="Documents with any of these tags.")
    doc_type: list[DocType] = Field([], max_length=20, description="Documents of any of these types.")
    path_prefix: Annotated[str, Field(max_length=4_096), AfterValidator(clean_text)] | None = Field(
        None, description="Documents whose path begins with this, upper and lower case as written."
    )
    scope: list[Annotated[Scope, Field(strict=False)]] = Field(
        [], max_length=3, description="Only these scopes."
    )
    updated_from: Moment | None = Field(None, description="Updated at this time or later (ISO 8601).")
    updated_before: Moment | None = Field(None, description="Updated before this time (ISO 8601).")


if TYPE_CHECKING:

    class SearchOptions(Request):
        """Any fields of `RankingRules`: what they are for one request."""
else:
    SearchOptions = partial_of(RankingRules, "SearchOptions", strict=True)


QueryText = Annotated[str, Field(max_length=QUERY_MAX_CHARS), AfterValidator(clean_query)]


class RetrievalRequest(Request):
    """What is looked for and how; a body says beside it what is to come of it."""

    query: QueryText = Field(
        description="What to look for, as plain text: no character of it is an operator."
    )
    filters: SearchFilters = Field(SearchFilters(), description="Which documents may be found.")
    parts: list[Part] = Field(
        list(PARTS),
        min_length=1,
        max_length=len(PARTS),
        description="Which parts of the retrieval to use: keyword, vector, names (of entities), graph.",
    )
    options: SearchOptions | None = Field(
        None, description="Weights, depths and switches that are otherwise: docs/reference/search.md."
    )


class SearchRequest(RetrievalRequest):
    page_size: int | None = Field(
        None, ge=1, description="Hits of a page; the setting's default when left out."
    )
    cursor: Annotated[str, Field(max_length=1_024)] | None = Field(
        None, description="`next_cursor` of the page before, with the same query, filters, parts and options."
    )
    explain: bool = Field(default=False, description="Add the trace: every stage with its counts and time.")
