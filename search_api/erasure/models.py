"""Bodies and answers of the erasure routes; OpenAPI is made from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from search_api.models import Answer
from search_api.requests import Request, clean_query, clean_text

#: Documents of one call; with more, `more` says so and the call is repeated.
DOCUMENTS_MAX = 1_000
NAME_MAX_CHARS = 200

_Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS), AfterValidator(clean_query)]


_Text = Annotated[str, Field(max_length=300), AfterValidator(clean_text)]
#: JSON readers keep integers of this size exact.
_Count = Annotated[int, Field(ge=0, le=2**53)]


class ErasureBody(Request):
    """Which documents: exactly one of the fields."""

    doc_ids: list[Annotated[str, Field(max_length=100)]] | None = Field(
        None, min_length=1, max_length=100, description="These documents."
    )
    agent: _Name | None = Field(None, description="All that this agent wrote, personal memories included.")
    session: _Name | None = Field(None, description="All of this session.")
    subject: _Name | None = Field(
        None, description="All that mention this name, as it is written or as another name of its entity."
    )


class ReceiptAnswer(Answer):
    """Counts before and after, under an HMAC of this installation. It holds no text of what was erased."""

    erasure_id: str
    tenant_id: str
    requested_by: str = Field(description="Agent of the key that asked.")
    requested_at: str
    completed_at: str
    doc_ids: list[str]
    removed: dict[str, int] = Field(description="Rows and files that there were, by store.")
    remaining: dict[str, int] = Field(description="What a search of every store found afterwards.")
    log_expires_at: str = Field(
        description="By then the last log segment that may hold the text is deleted; until then nothing reads it."
    )
    signature: str = Field(
        description="HMAC-SHA256 over the other fields; `POST /v1/erasures/check` says whether it is genuine."
    )


class ReceiptBody(Request):
    """A receipt as an erasure gave it, every field."""

    erasure_id: _Text
    tenant_id: _Text
    requested_by: _Text
    requested_at: _Text
    completed_at: _Text
    doc_ids: list[_Text] = Field(max_length=10_000)
    removed: dict[_Text, _Count] = Field(max_length=100)
    remaining: dict[_Text, _Count] = Field(max_length=100)
    log_expires_at: _Text
    signature: _Text


class CheckAnswer(Answer):
    genuine: bool = Field(description="This installation signed it, and nothing in it was changed since.")


class ErasureAnswer(Answer):
    erasure_id: str
    state: Literal["pending", "complete"] = Field(
        description="Pending: the agents aren't through with it yet."
    )
    documents: int = Field(description="Documents of this erasure.")
    more: bool = Field(False, description="There are more that match: send the same request again.")
    remaining: dict[str, int] = Field(description="What is still found, by store.")
    receipt: ReceiptAnswer | None = None
