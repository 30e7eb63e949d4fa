"""What a parsed note is made of."""

from __future__ import annotations

from dataclasses import dataclass

from indexers.domain.frontmatter import Frontmatter
from indexers.domain.names import LinkType


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading of the note's own structure (not in a quote or list): its lines are text[start:end]."""

    level: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    start: int
    end: int
    display: str | None
    #: About 50 characters on both sides, from the link's own line.
    context: str
    #: `#heading` or `^block` as written.
    heading: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLink:
    """One edge: all occurrences of one target key and link type."""

    target: str
    target_key: str
    link_type: LinkType
    occurrences: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedNote:
    text: str
    title: str
    abstract: str
    frontmatter: Frontmatter
    headings: tuple[Heading, ...]
    links: tuple[FoundLink, ...]
    tags: tuple[str, ...]
    terms: tuple[str, ...]
    language: str | None
    warnings: tuple[str, ...]
    body_start: int
    #: Offsets at which a block begins (paragraph, list item, table …): where chunks may be cut.
    block_starts: tuple[int, ...]
    #: Spans of prose: pieces that no block, link, code or formula breaks, each of one span a line.
    prose: tuple[tuple[tuple[int, int], ...], ...] = ()
