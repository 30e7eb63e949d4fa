"""Inline content of a block → the spans of the file's text that are prose. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from indexers.domain.sourcemap import Positions

ProseSpans = tuple[tuple[int, int], ...]

#: Addresses written bare: nobody says a name in them.
_ADDRESS = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://|www\.|mailto:)\S+|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]+"
)
_CELL_BORDER = re.compile(r"(?<!\\)\|")


def prose_pieces(
    content: str, positions: Positions, apart: Sequence[tuple[int, int]], *, is_row: bool
) -> list[ProseSpans]:
    """Pieces between what stands apart (spans of the content) and addresses; of a table row read whole, cells."""
    breaks = [*apart, *(match.span() for match in _ADDRESS.finditer(content))]
    if is_row:
        breaks += [match.span() for match in _CELL_BORDER.finditer(content)]
    pieces: list[ProseSpans] = []
    at = 0
    for start, end in [*sorted(breaks), (len(content), len(content))]:
        if start > at and (piece := tuple(_spans(content, positions, at, start))):
            pieces.append(piece)
        at = max(at, end)
    return pieces


def _spans(content: str, positions: Positions, start: int, end: int) -> Iterator[tuple[int, int]]:
    """One span a line, or a run of a table cell, where content and text go in step."""
    begins = positions.content_starts
    for at in range(max(bisect_right(begins, start) - 1, 0), len(begins)):
        if begins[at] >= end:
            return
        first = max(begins[at], start)
        behind = begins[at + 1] if at + 1 < len(begins) else len(content)
        line_end = content.find("\n", begins[at], behind)
        last = min(behind if line_end < 0 else line_end, end)
        if first < last and not content[first:last].isspace():
            yield positions.sources[at] + first - begins[at], positions.sources[at] + last - begins[at]
