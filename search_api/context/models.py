"""Answers of `POST /v1/context`; OpenAPI is made from them."""

from __future__ import annotations

from pydantic import Field

from search_api.models import Answer


class ReadAnswer(Answer):
    """How the whole text is read (L2): this answer never holds it."""

    method: str
    path: str


class ContextExcerptAnswer(Answer):
    """text[start:end] of the document: whole paragraphs or list items that follow each other."""

    text: str
    start: int = Field(description="Offset of the first code point in the document's text.")
    end: int = Field(description="Offset after the last code point.")
    heading_path: list[str]


class RepeatAnswer(Answer):
    """A part of the document that is left out because another excerpt says it."""

    start: int
    end: int
    shown_in: str = Field(description="doc_id of the document whose excerpt holds the text.")


class ContextItemAnswer(Answer):
    number: int = Field(description="As it stands in `text`.")
    doc_id: str
    path: str
    title: str
    abstract: str = Field(description="One line; beside title and path (L0) where there is room.")
    score: float
    content_hash: str = Field(description="Of the text that the offsets count in; the `ETag` of its content.")
    excerpts: list[ContextExcerptAnswer] = Field(description="In the order of the text (L1).")
    repeats: list[RepeatAnswer]
    no_excerpt: str | None = Field(
        description="Why there is none: not_among_best (beyond `l1_documents_max`), no_room (the budget), "
        "said_elsewhere (see `repeats`), empty; or the file: changed, gone, unreadable, not_text, no_vault, "
        "vault_away."
    )
    read: ReadAnswer


class ContextAnswer(Answer):
    text: str = Field(description="The context as Markdown: every document with title, path and excerpts.")
    tokens: int = Field(description="Tokens of `text`, counted over the whole; never more than the budget.")
    budget_tokens: int
    tokenizer: str = Field(description="What counted: the tokenizer of the embedder that answers queries.")
    documents: list[ContextItemAnswer] = Field(description="Best first, as in `text`.")
    left_out: int = Field(description="Documents that were found and asked for, for whose line was no room.")
    candidates: int = Field(description="Documents that were ranked, as in a search.")
    words_found: bool | None = Field(description="As in a search.")
