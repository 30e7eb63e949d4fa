"""Body of `POST /v1/context`: what to search for, as in a search, and how large the context may be."""

from __future__ import annotations

from pydantic import Field

from search_api.requests import QueryText, RetrievalRequest, SearchRequest


class ContextRequest(RetrievalRequest):
    query: QueryText = Field(
        description="What the context is for, as plain text: no character of it is an operator."
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
