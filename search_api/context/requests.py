"""Body of `POST /v1/context`: what to search for, as in a search, and how large the context may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from search_api.models import PARTS, Part
from search_api.requests import Request, SearchFilters, SearchOptions, SearchRequest, clean_query
from search_api.settings import QUERY_MAX_CHARS


class ContextRequest(Request):
    query: Annotated[str, Field(max_length=QUERY_MAX_CHARS), AfterValidator(clean_query)] = Field(
        description="What the context is for, as plain text: no character of it is an operator."
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
    budget_tokens: int | None = Field(
        None, ge=1, description="Most tokens of the text; the setting's default when left out."
    )
    documents_max: int | None = Field(None, ge=1, description="Most documents, each with a line (L0).")
    l1_documents_max: int | None = Field(
        None, ge=0, description="How many of the best are shown with excerpts (L1)."
    )

    def search(self, documents: int) -> SearchRequest:
        """The search whose hits are the context's documents."""
        return SearchRequest(
            query=self.query,
            filters=self.filters,
            parts=self.parts,
            options=self.options,
            page_size=documents,
        )
