"""Settings of the query service."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from indexers.domain.scores import KEYWORD_FLOOR
from indexers.settings import Section

#: How the parts are brought together; docs/explanation/scores.md.
Fusion = Literal["weighted", "rrf"]
#: No setting lets a longer query in.
QUERY_MAX_CHARS: Final = 20_000


class ApiSettings(Section):
    host: str = Field("127.0.0.1", description="Address the query service listens on.")
    port: int = Field(8470, ge=0, le=65_535, description="Port of the query service.")
    keys_file: Path | None = Field(None, description="API keys (JSON); empty: keys.json in the data folder.")
    request_timeout_seconds: float = Field(10.0, gt=0, description="Longest time one request may take.")
    body_max_bytes: int = Field(1_048_576, ge=1_024, description="Largest request body; more is 413.")


class SearchSettings(Section):
    """Defaults of the retrieval; docs/reference/search.md gives the rules."""

    candidates: int = Field(
        100, ge=10, le=1_000, description="Candidates of each retrieval part, whatever the page."
    )
    keyword_weight: float = Field(0.5, ge=0, description="Weight of BM25 within the documents leg.")
    vector_weight: float = Field(0.5, ge=0, description="Weight of k-NN within the documents leg.")
    keyword_floor: float = Field(
        KEYWORD_FLOOR, gt=0, description="BM25 scores are divided by max(best, floor)."
    )
    fusion: Fusion = Field(
        "weighted", description="`weighted`: by normalised scores; `rrf`: by places (reciprocal rank fusion)."
    )
    page_size: int = Field(10, ge=1, description="Hits of a page unless the request says so.")
    page_size_max: int = Field(100, ge=1, description="Largest page.")
    query_max_chars: int = Field(2_000, ge=10, le=QUERY_MAX_CHARS, description="Longest query, characters.")
    content_page_chars: int = Field(
        65_536, ge=1_000, description="Largest page of a document's content, characters."
    )
    excerpt_max_chars: int = Field(320, ge=40, le=4_000, description="Longest excerpt of a hit, characters.")
    filter_ids_max: int = Field(
        5_000,
        ge=100,
        le=10_000,
        description="Up to so many passing documents filters are exact for vectors; beyond, they come last.",
    )
    query_cache_entries: int = Field(
        1_024, ge=0, description="Query vectors kept in memory (per tenant and text)."
    )
    stages_off: tuple[Literal["normalise", "weigh"], ...] = Field(
        (), description="Stages left out, for experiments."
    )
