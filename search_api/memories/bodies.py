"""Bodies of memory writes, checked and cleaned. Lengths are checked before anything walks through a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, PlainSerializer, model_validator

from indexers.domain.entities.evidence import NAME_MAX_CHARS, QUOTE_MAX_CHARS
from indexers.domain.entities.relations import TYPE_MAX_CHARS
from indexers.domain.frontmatter import POSITION_MAX
from indexers.domain.identity import LABEL_PATTERN, SEPARATOR, Scope
from search_api.requests import DocType, Moment, Request, clean_text

CONTENT_MAX_CHARS: Final = 200_000
BATCH_MAX: Final = 100
KEY_MAX_CHARS: Final = 200
_TAGS_MAX: Final = 50
_RELATIONS_MAX: Final = 20
#: What no file holds, or makes it no text.
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_content(value: str) -> str:
    """As it is: quotes stand in it, and a person reads it. It must say something."""
    if _NOT_STORABLE.search(value):
        msg = "NUL characters and lone surrogates are not allowed"
        raise ValueError(msg)
    if not value.strip():
        msg = "it is empty: give a text"
        raise ValueError(msg)
    return value


def clean_line(value: str) -> str:
    line = " ".join(clean_text(value).split())
    if not line:
        msg = "it is blank"
        raise ValueError(msg)
    return line


def _iso(value: object) -> object:
    return value.isoformat() if hasattr(value, "isoformat") else value


Content = Annotated[str, Field(max_length=CONTENT_MAX_CHARS), AfterValidator(clean_content)]
Line = Annotated[str, Field(max_length=200), AfterValidator(clean_line)]
ShortLine = Annotated[str, Field(max_length=64), AfterValidator(clean_line)]
Tags = Annotated[list[ShortLine], Field(max_length=_TAGS_MAX)]
Label = Annotated[str, Field(max_length=128, pattern=f"^{LABEL_PATTERN}$")]
Position = Annotated[int, Field(ge=0, le=POSITION_MAX)]
When = Annotated[Moment, PlainSerializer(_iso)]
IdempotencyKey = Annotated[str, Field(min_length=1, max_length=KEY_MAX_CHARS), AfterValidator(clean_text)]


class RelationBody(Request):
    """Something that the memory says of two names; the quote stands in its content."""

    subject: Annotated[str, Field(max_length=NAME_MAX_CHARS), AfterValidator(clean_line)]
    subject_label: Label = Field(description="Entity label of the subject: person, service, …")
    type: Annotated[str, Field(max_length=TYPE_MAX_CHARS), AfterValidator(clean_line)] = Field(
        description="Small letters, words joined by `_` or `-`: owns, on_call_for."
    )
    object: Annotated[str, Field(max_length=NAME_MAX_CHARS), AfterValidator(clean_line)]
    object_label: Label
    quote: Annotated[str, Field(max_length=QUOTE_MAX_CHARS), AfterValidator(clean_content)] = Field(
        description="The very words of the content that say so; white space doesn't count."
    )


class _Described(Request):
    """Fields that a memory and an update of one have in common."""

    content: Content = Field(description="Markdown, without frontmatter.")
    title: Line | None = Field(None, description="Also names the file.")
    tags: Tags | None = Field(None, description="Compared without regard to case.")
    category: ShortLine | None = None
    valid_from: When | None = Field(None, description="Before it, the memory ranks lower (ISO 8601).")
    expires_at: When | None = Field(None, description="After it, the memory ranks lower (ISO 8601).")
    session: Line | None = Field(None, description="Conversation or log that this is a part of.")
    speaker: Line | None = Field(None, description="Who says it.")
    position: Position | None = Field(None, description="Place in the session, from 0 on.")
    idempotency_key: IdempotencyKey | None = Field(
        None, description="A repeated request with the same key is one write. The header says the same."
    )

    @model_validator(mode="after")
    def _validity_is_a_time(self) -> Self:
        if self.valid_from is not None and self.expires_at is not None and self.expires_at <= self.valid_from:
            msg = "expires_at is not after valid_from"
            raise ValueError(msg)
        return self


class MemoryBody(_Described):
    doc_type: DocType = Field("memory", description="note, memory, context, skill or session_summary.")
    source: ShortLine = Field(
        "memory_tool", description="Where it comes from; ranked (docs/reference/search.md)."
    )
    scope: Annotated[Scope, Field(strict=False)] = Field(
        Scope.PERSONAL, description="Who may see it: personal (this agent), team, shared (the tenant)."
    )
    team: Label | None = Field(
        None, description="With scope `team`; needed unless the key has just one team."
    )
    relations: list[RelationBody] = Field([], max_length=_RELATIONS_MAX)
    supersedes: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="Id of a document that this one says better: it is kept, marked and ranked down."
    )


class MemoryUpdate(_Described):
    """What isn't named stays; what is null goes."""

    source: ShortLine | None = None


class MemoriesBody(Request):
    memories: list[MemoryBody] = Field(min_length=1, max_length=BATCH_MAX)


def body_hash(what: str, body: MemoryBody | MemoryUpdate | None) -> str:
    """Of what was asked, the key apart. An update's unnamed fields are none."""
    if body is None:
        said = b""
    else:
        only_set = isinstance(body, MemoryUpdate)
        said = body.model_dump_json(exclude={"idempotency_key"}, exclude_unset=only_set).encode()
    return hashlib.sha256(f"{what}{SEPARATOR}".encode() + said).hexdigest()


def bytes_of(bodies: Sequence[MemoryBody | MemoryUpdate]) -> int:
    return sum(len(body.content.encode()) for body in bodies)
