"""A note's body → its blocks: paragraphs, list items, tables, quotes, code, each with the section it stands in. Pure.

One pass over the lines, linear whatever they hold: this runs while somebody waits, and a parser's token for each of
a hundred thousand lines would take a second. What is a link or a tag is of no interest here, only where to cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Kind = Literal["text", "item", "quote", "table", "code"]

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(?:(=+)|-+)[ \t]*$")
_RULE: Final = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_COLUMNS: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
#: Formulas and comments of several lines, as the parser of notes knows them.
_DELIMITERS: Final = ("$$", "%%")
#: A line that is longer is none of the short forms (rules, rows of dashes): its text isn't looked through for them.
_SHORT_LINE: Final = 1_000


class Block(NamedTuple):
    """text[start:end] without blank ends; `section` counts the headings before it."""

    start: int
    end: int
    kind: Kind
    section: int


class Heading(NamedTuple):
    level: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...]
    #: Of each heading, the number of the one that it stands under; -1: none.
    _above: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_above", tuple(_parents(self.headings)))

    def path_of(self, section: int) -> tuple[Heading, ...]:
        """The headings above a section's blocks, outermost first; none above the first heading."""
        path: list[Heading] = []
        number = section - 1
        while number >= 0:
            path.append(self.headings[number])
            number = self._above[number]
        return tuple(reversed(path))


def read_blocks(text: str, body_start: int) -> Blocks:
    """Of text[body_start:]; a body of nothing but headings has them as its blocks."""
    scan = _Scan(text)
    for line in _LINE.finditer(text, body_start):
        scan.line(line.start(), line.end())
    scan.close()
    blocks = scan.blocks or [
        Block(heading.start, heading.end, "text", number) for number, heading in enumerate(scan.headings)
    ]
    return Blocks(blocks=tuple(blocks), headings=tuple(scan.headings))


@dataclass(slots=True)
class _Scan:
    text: str
    blocks: list[Block] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    _kind: Kind | None = None
    _start: int = 0
    _end: int = 0
    _lines: int = 0
    #: What ends the code, formula or comment that is open.
    _closing: str | None = None

    def line(self, start: int, end: int) -> None:
        line = self.text[start:end]
        bare = line.strip()
        if self._closing is not None:
            self._end = end
            if _closes(bare, self._closing):
                self.close()
        elif not bare:
            self.close()
        elif not self._apart(line.rstrip(), bare, start, end):
            self._flow(line.rstrip(), bare, start, end)

    def close(self) -> None:
        if self._kind is not None:
            start, end = _trimmed(self.text, self._start, self._end, keeps_indent=self._kind == "code")
            if start < end:
                self.blocks.append(Block(start, end, self._kind, len(self.headings)))
        self._kind, self._closing = None, None

    def _apart(self, line: str, bare: str, start: int, end: int) -> bool:
        """Headings, rules, and what opens a block that only its own mark closes."""
        heading = _HEADING.match(line)
        if heading is not None:
            self.close()
            self.headings.append(Heading(len(heading[1]), start, start + len(line)))
            return True
        is_short = len(line) <= _SHORT_LINE
        underline = _UNDERLINE.match(line) if is_short and self._kind == "text" and self._lines == 1 else None
        if underline is not None:
            self.headings.append(
                Heading(1 if underline[1] else 2, *_trimmed(self.text, self._start, self._end))
            )
            self._kind = None
            return True
        if is_short and _RULE.match(line):
            self.close()
            return True
        closing = self._opening(line, bare, end)
        if closing is not None:
            self._open("code", start, end)
            self._closing = closing
        return closing is not None

    def _opening(self, line: str, bare: str, end: int) -> str | None:
        fence = _FENCE.match(line)
        if fence is not None and not (fence[1][0] == "`" and "`" in line[fence.end() :]):
            return fence[1]
        for mark in _DELIMITERS:
            if bare.startswith(mark) and mark not in bare[2:] and self.text.find(mark, end) >= 0:
                return mark
        return None

    def _flow(self, line: str, bare: str, start: int, end: int) -> None:
        if _ITEM.match(line):
            self._open("item", start, end)
        elif bare[0] == ">" and self._kind != "quote":
            self._open("quote", start, end)
        elif self._kind is None:
            self._open("text", start, end)
        else:
            is_columns = len(line) <= _SHORT_LINE and "|" in line and _COLUMNS.match(line)
            if self._kind == "text" and self._lines == 1 and is_columns:
                self._kind = "table"
            self._end = end
            self._lines += 1

    def _open(self, kind: Kind, start: int, end: int) -> None:
        self.close()
        self._kind, self._start, self._end, self._lines = kind, start, end, 1


def _parents(headings: Iterable[Heading]) -> Iterator[int]:
    """The nearest heading before each that has a lower level."""
    open_ones: list[tuple[int, int]] = []
    for number, heading in enumerate(headings):
        while open_ones and open_ones[-1][1] >= heading.level:
            open_ones.pop()
        yield open_ones[-1][0] if open_ones else -1
        open_ones.append((number, heading.level))


def _closes(bare: str, closing: str) -> bool:
    if closing in _DELIMITERS:
        return closing in bare
    return bare.startswith(closing) and not bare.strip(closing[0])


def _trimmed(text: str, start: int, end: int, *, keeps_indent: bool = False) -> tuple[int, int]:
    piece = text[start:end]
    end -= len(piece) - len(piece.rstrip())
    return (start if keeps_indent else start + len(piece) - len(piece.lstrip())), end
