"""A note's text → title, abstract, headings, links, tags and terms, by a Markdown parser's tokens.

Links in code, math and comments are no links. Every offset counts code points of the text; `text[start:end]`
of an occurrence is the link as written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from indexers.domain.frontmatter import Frontmatter, normalise_tag, read_frontmatter, unique
from indexers.domain.markdown_parser import markdown_parser
from indexers.domain.names import LinkType, file_stem, target_key
from indexers.domain.note import FoundLink, Heading, Occurrence, ParsedNote
from indexers.domain.pieces import ProseSpans, prose_pieces
from indexers.domain.prose import ABSTRACT_CHARACTERS, language, plain_text, shorten
from indexers.domain.sourcemap import Lines, Positions, block_positions, cell_positions
from indexers.domain.terms import content_terms
from indexers.domain.wikilinks import ENVIRONMENT_KEY, PIPED_WIKILINK, Findings, RawLink, scan

__all__ = ["PARSER_VERSION", "FoundLink", "Frontmatter", "Heading", "Occurrence", "ParsedNote", "parse"]

#: Another version means: index every note again (hash gate).
PARSER_VERSION = "markdown-4"
CONTEXT_CHARACTERS = 50
TITLE_CHARACTERS = 300

WARNING_NOT_PARSED = "markdown_not_parsed"


def parse(text: str, *, path: str, frontmatter_max_bytes: int) -> ParsedNote:
    """Never raises, whatever the text. `path`: the last resort's title, and the folder of relative links."""
    front = read_frontmatter(text, max_bytes=frontmatter_max_bytes)
    walk = _Walk(Lines(text, front.body_start))
    warnings = front.warnings
    try:
        walk.run()
    except RecursionError:
        walk = _Walk(Lines(text, front.body_start))
        warnings = (*warnings, WARNING_NOT_PARSED)
    links = scan(text, 0, front.body_start) + sorted(walk.links, key=lambda link: link.start)
    first_heading = next(
        (heading.text for heading in walk.headings if heading.level == 1 and heading.text), None
    )
    title = front.title or first_heading or file_stem(path)
    return ParsedNote(
        text=text,
        title=shorten(unicodedata.normalize("NFC", title), TITLE_CHARACTERS),
        abstract=shorten(walk.abstract, ABSTRACT_CHARACTERS),
        frontmatter=front,
        headings=tuple(walk.headings),
        links=_group(links, walk.lines, path),
        tags=unique(iter((*front.tags, *map(normalise_tag, walk.tags)))),
        terms=content_terms(walk.prose, title=title),
        language=language(walk.prose),
        warnings=warnings,
        body_start=front.body_start,
        block_starts=tuple(sorted(set(walk.block_starts))),
        prose=tuple(walk.pieces),
    )


@dataclass(slots=True)
class _Walk:
    """One pass over the block tokens; inline content is parsed here, so that positions are known."""

    lines: Lines
    links: list[RawLink] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    block_starts: list[int] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    pieces: list[ProseSpans] = field(default_factory=list)
    abstract: str = ""
    #: Cell of the table row being read; None outside of tables, and where the row is read whole.
    _column: int | None = None
    _skips_cells: bool = False

    def run(self) -> None:
        environment: dict[str, object] = {}
        tokens = _PARSER.parse(self.lines.text[self.lines.starts[0] :].removeprefix("\ufeff"), environment)
        fallback = ""
        for before, token in zip([None, *tokens], tokens, strict=False):
            self._structure(token)
            if token.type == "tr_open":
                self._row(token, environment)
            if token.type != "inline" or before is None or self._skips_cells:
                continue
            self._inline(token, environment)
            if before.type == "heading_open":
                self._heading(before, token)
            elif not self.abstract:
                readable = plain_text(_display(token))
                fallback = fallback or readable
                self.abstract = readable if before.type == "paragraph_open" and before.level == 0 else ""
        self.abstract = self.abstract or fallback

    def _structure(self, token: Token) -> None:
        if token.type in ("th_open", "td_open"):
            self._column = 0 if self._column is None else self._column + 1
        elif token.type == "tr_close":
            self._column, self._skips_cells = None, False
        if token.map is not None and (
            token.level == 0 or (token.type == "list_item_open" and token.level == 1)
        ):
            self.block_starts.append(self.lines.start_of(token.map[0]))

    def _row(self, token: Token, environment: dict[str, object]) -> None:
        """A row whose wikilinks hold bare pipes is read as one line: its cells would cut `[[a|b]]` in two."""
        source = "" if token.map is None else self.lines.source(token.map[0])
        self._skips_cells = PIPED_WIKILINK.search(source) is not None
        if self._skips_cells:
            row = Token("inline", "", 0, content=source.strip(), map=token.map)
            self._inline(row, environment)

    def _inline(self, token: Token, environment: dict[str, object]) -> None:
        found = Findings(token.content)
        environment[ENVIRONMENT_KEY] = found
        token.children = _PARSER.inline.parse(token.content, _PARSER, environment, [])
        self.prose.append(_display(token))
        self.tags.extend(found.tags)
        positions = (
            block_positions(token, self.lines)
            if self._column is None
            else cell_positions(token, self._column, self.lines)
        )
        if positions is not None:
            self.links.extend(_placed(link, positions) for link in found.links)
            self.pieces.extend(prose_pieces(token.content, positions, found.apart, is_row=self._skips_cells))

    def _heading(self, opening: Token, token: Token) -> None:
        if opening.level == 0 and opening.map is not None:
            first, behind = opening.map
            self.headings.append(
                Heading(
                    level=int(opening.tag[1]),
                    text=shorten(plain_text(_display(token)), TITLE_CHARACTERS),
                    start=self.lines.start_of(first),
                    end=self.lines.ends[behind - 1],
                )
            )


def _display(token: Token) -> str:
    """Inline content with links shown as their text."""
    shown = {"text": "", "code_inline": "`", "wikilink": ""}
    parts: list[str] = []
    for child in token.children or ():
        if child.type in shown:
            parts.append(f"{shown[child.type]}{child.content}{shown[child.type]}")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "".join(parts)


def _placed(link: RawLink, positions: Positions) -> RawLink:
    start, end = positions.span(link.start, link.end)
    return RawLink(
        start=start,
        end=end,
        target=link.target,
        display=link.display,
        fragment=link.fragment,
        link_type=link.link_type,
    )


def _group(links: Sequence[RawLink], lines: Lines, path: str) -> tuple[FoundLink, ...]:
    groups: dict[tuple[str, LinkType], list[RawLink]] = {}
    for link in links:
        key = target_key(link.target, from_path=path, link_type=link.link_type)
        groups.setdefault((key, link.link_type), []).append(link)
    return tuple(
        FoundLink(
            target=group[0].target,
            target_key=key,
            link_type=link_type,
            occurrences=tuple(_occurrence(link, lines.text) for link in group),
        )
        for (key, link_type), group in groups.items()
    )


def _occurrence(link: RawLink, text: str) -> Occurrence:
    return Occurrence(
        start=link.start,
        end=link.end,
        display=link.display,
        context=context_of(text, link.start, link.end),
        heading=link.fragment,
    )


def context_of(text: str, start: int, end: int) -> str:
    """About 50 characters on both sides, from the span's own line."""
    before = text[max(0, start - CONTEXT_CHARACTERS) : start].replace("\r", "\n").rpartition("\n")[2]
    after = text[end : end + CONTEXT_CHARACTERS].replace("\r", "\n").partition("\n")[0]
    return " ".join((before + text[start:end] + after).split())


_PARSER = markdown_parser()
