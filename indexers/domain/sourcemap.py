"""Where the parser's inline content stands in the file's text.

The block parser hands out content without indentation, quote marks and cell borders, and with lines only as a
map. Every content line is a tail of its source line (less trailing blanks and closing hashes), every table
cell a known part of it; so positions are found by aligning from the right and by splitting cells as the
parser does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n?|\n")
_CLOSING_HASHES = re.compile(r"[ \t]#+[ \t]*$")


class Lines:
    """The lines of `text` from `base` on, numbered as the parser numbers them."""

    def __init__(self, text: str, base: int) -> None:
        self.text = text
        ends = list(_LINE_END.finditer(text, base))
        self.starts = [base, *(match.end() for match in ends)]
        self.ends = [*(match.start() for match in ends), len(text)]
        self._row: tuple[int, str, list[tuple[int, int]]] = (-1, "", [])

    def source(self, line: int) -> str:
        return self.text[self.starts[line] : self.ends[line]]

    def row(self, line: int) -> tuple[str, list[tuple[int, int]]]:
        """A table row's source and its cells. Asked for cell by cell, so the last one is kept."""
        if self._row[0] != line:
            source = self.source(line)
            self._row = (line, source, _cells(source))
        return self._row[1:]

    def start_of(self, line: int) -> int:
        """Start of a line; the end of the text for the line after the last."""
        return self.starts[line] if line < len(self.starts) else len(self.text)


@dataclass(frozen=True, slots=True)
class Positions:
    """Piecewise shift: content[content_starts[i]:] begins at text[sources[i]:]."""

    content_starts: tuple[int, ...]
    sources: tuple[int, ...]

    def source(self, position: int) -> int:
        piece = max(bisect_right(self.content_starts, position) - 1, 0)
        return self.sources[piece] + position - self.content_starts[piece]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The end is that of the last character, so that it never runs over a hidden prefix."""
        return self.source(start), self.source(end - 1) + 1


def block_positions(token: Token, lines: Lines) -> Positions | None:
    """Positions of a paragraph's or heading's inline content; None where it can't be aligned."""
    if token.map is None:
        return None
    content_starts, sources, position = [], [], 0
    line, last = token.map
    for content_line in token.content.split("\n"):
        core = content_line.strip()
        column = None
        while line < min(last, len(lines.starts)) and column is None:
            column = _column(lines.source(line), core)
            line += 1
        if column is None:
            return None
        lead = len(content_line) - len(content_line.lstrip()) if core else 0
        content_starts.append(position + lead)
        sources.append(lines.starts[line - 1] + column)
        position += len(content_line) + 1
    return Positions(tuple(content_starts), tuple(sources))


def cell_positions(token: Token, column: int, lines: Lines) -> Positions | None:
    """Positions of a table cell's content, in which an escaped pipe of the source is a bare one."""
    if token.map is None:
        return None
    source, cells = lines.row(token.map[0])
    if column >= len(cells):
        return None
    start, end = cells[column]
    cell = source[start:end]
    start += len(cell) - len(cell.lstrip())
    content_starts, sources, position = [0], [lines.starts[token.map[0]] + start], 0
    for match in re.finditer(r"\\\|", source[start:end].rstrip()):
        position = match.start() - len(content_starts) + 1
        content_starts.append(position)
        sources.append(lines.starts[token.map[0]] + start + match.start() + 1)
    if source[start:end].rstrip().replace("\\|", "|") != token.content.rstrip():
        return None
    return Positions(tuple(content_starts), tuple(sources))


def _column(source: str, core: str) -> int | None:
    tail = source.replace("\0", "\ufffd").rstrip()
    if tail.endswith(core):
        return len(tail) - len(core)
    tail = _CLOSING_HASHES.sub("", tail).rstrip()
    return len(tail) - len(core) if tail.endswith(core) else None


def _cells(source: str) -> list[tuple[int, int]]:
    """Spans between unescaped pipes, without the empty ones outside of the border pipes."""
    quoted = re.match(r"(?:[ \t]*>)*[ \t]*(?:[-+*][ \t]+|\d{1,9}[.)][ \t]+)*", source)
    begin = quoted.end() if quoted else 0
    pipes = re.finditer(r"(?<!\\)\|", source[begin:])
    bounds = [begin, *(begin + pipe.end() for pipe in pipes)]
    spans = [(start, following - 1) for start, following in pairwise(bounds)]
    spans.append((bounds[-1], len(source.rstrip())))
    if len(spans) > 1 and not source[spans[0][0] : spans[0][1]].strip():
        spans.pop(0)
    return spans
