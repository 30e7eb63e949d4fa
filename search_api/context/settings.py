"""Settings of `POST /v1/context`."""

from __future__ import annotations

from pydantic import Field

from indexers.settings import Section


class ContextSettings(Section):
    """How large a context is; docs/how-to/assemble-context.md."""

    budget_tokens: int = Field(4_000, ge=1, description="Tokens of a context unless the request says so.")
    budget_tokens_max: int = Field(
        32_000, ge=1, le=200_000, description="Largest budget of a request, tokens."
    )
    documents: int = Field(10, ge=1, description="Documents of a context unless the request says so.")
    documents_max: int = Field(
        50, ge=1, le=100, description="Most documents of a request; not more than `search.page_size_max`."
    )
    l1_documents: int = Field(
        6, ge=0, description="How many of the best are shown with excerpts unless the request says so."
    )
    l1_documents_max: int = Field(20, ge=0, le=100, description="Most documents with excerpts of a request.")
    document_tokens: int = Field(
        800, ge=20, description="Most tokens that the excerpts of one document take, whatever the budget."
    )
