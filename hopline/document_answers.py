"""What the query service answers about documents, typed. Fields that a newer service adds are ignored."""

from __future__ import annotations

import msgspec

from hopline.answers import DocumentLine, Paged


class Document(DocumentLine, frozen=True, kw_only=True):
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
    size: int
    left_out_bytes: int
    no_vector_reason: str | None
    warnings: list[str]
    created_at: str | None
    updated_at: str | None
    indexed_at: str
    moved_from: str | None
    version: int


class ContentPage(msgspec.Struct, frozen=True, kw_only=True):
    doc_id: str
    path: str
    content_hash: str
    start: int
    end: int
    #: `start` of the following page; None at the end.
    next: int | None
    total_chars: int
    text: str
    warnings: list[str]


class DocumentName(msgspec.Struct, frozen=True, kw_only=True):
    doc_id: str
    title: str
    path: str


class LinkPlace(msgspec.Struct, frozen=True, kw_only=True):
    start: int
    end: int
    display: str | None
    context: str
    heading: str | None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A link as it stands in its document: to the same target, all its places."""

    target: str
    link_type: str
    ambiguous: bool
    occurrences: list[LinkPlace]


class Link(Written, frozen=True, kw_only=True):
    to: DocumentName | None


class LinkPage(Paged, frozen=True, kw_only=True):
    links: list[Link]


class Backlink(Written, frozen=True, kw_only=True, rename={"from_": "from"}):
    from_: DocumentName


class BacklinkPage(Paged, frozen=True, kw_only=True):
    links: list[Backlink]
