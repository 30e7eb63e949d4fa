"""Arguments that several tools take; their descriptions are what a model reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

DocId = Annotated[
    str,
    Field(
        min_length=1, max_length=512, description="doc_id of a document, from search, related or backlinks."
    ),
]
Limit = Annotated[int, Field(ge=1, le=50, description="Most rows.")]
Cursor = Annotated[
    str | None, Field(max_length=16_384, description="next_cursor of the page before, all else unchanged.")
]
Query = Annotated[str, Field(description="What to look for, as a plain question or words; any language.")]
DocType = Literal["note", "memory", "context", "skill", "session_summary"]
Scope = Literal["personal", "team", "shared"]
Tags = Annotated[list[str] | None, Field(description="Only documents with any of these tags.")]
Types = Annotated[list[DocType] | None, Field(description="Only these types of document.")]
Scopes = Annotated[
    list[Scope] | None,
    Field(description="Only these scopes: personal (yours alone), team, shared (everybody's)."),
]
Under = Annotated[str | None, Field(description="Only paths that begin with this.")]


class Statement(BaseModel):
    """A relation between two names that the content says in so many words."""

    model_config = ConfigDict(extra="forbid")

    subject: str
    subject_label: str = Field(
        description="person, organization, team, system, service, technology, project, …"
    )
    type: str = Field(description="owns, leads, on_call_for, …: small letters, `_` or `-`.")
    object: str
    object_label: str
    quote: str = Field(description="The words of the content that say so.")
