"""Where a text may be cut: between lines, sentences, words, at last between characters as a reader sees them. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

_LINES: Final = re.compile(r"[\r\n]+")
_SENTENCES: Final = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)\s*|[。！？]+\s*")
_SENTENCE_ENDS: Final = re.compile(r"[.!?…][\"'”’)\]*_`]*(?=\s|\Z)|[。！？]")
_WORDS: Final = re.compile(r"\s+")
#: Tried in this order: code and tables go by lines, prose by sentences.
BY_LINE: Final = (_LINES, _SENTENCES, _WORDS)
BY_SENTENCE: Final = (_SENTENCES, _LINES, _WORDS)

_JOINER: Final = "\u200d"
#: Longest character as a reader sees it that is kept whole; more marks on one letter are an attack.
_CLUSTER_CHARS: Final = 64
_MARKS: Final = frozenset({"Mn", "Mc", "Me", "Cf"})


def cut(
    text: str, start: int, end: int, limit: int, boundaries: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[int, int]]:
    """text[start:end] in pieces of at most `limit` characters, without blank ends."""
    while start < end:
        until = end if end - start <= limit else _boundary(text, start, start + limit, boundaries)
        piece = trim(text, start, until)
        if piece is not None:
            yield piece
        start = until


def trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Without white space at its ends; None: there is nothing else."""
    piece = text[start:end]
    kept = piece.strip()
    if not kept:
        return None
    begin = start + len(piece) - len(piece.lstrip())
    return begin, begin + len(kept)


def _boundary(text: str, start: int, limit: int, boundaries: tuple[re.Pattern[str], ...]) -> int:
    """The last line, sentence or word end before `limit`, in its half where there is one; else between characters."""
    least = start + max((limit - start) // 2, 1)
    for pattern in boundaries:
        for first in (least, start + 1):
            ends = [match.end() for match in pattern.finditer(text, first, limit)]
            if ends:
                return ends[-1]
    return _between_characters(text, start, least, limit)


def _between_characters(text: str, start: int, least: int, at: int) -> int:
    """The last place up to `at` that splits no letter from its marks, no syllable and no emoji."""
    for place in range(at, max(least, at - _CLUSTER_CHARS), -1):
        if not _joined(text, start, place):
            return place
    return at


def _joined(text: str, start: int, at: int) -> bool:
    """`start`: where a character begins; flags are pairs counted from there."""
    if at <= start or at >= len(text):
        return False
    before, behind = text[at - 1], text[at]
    if before == _JOINER or unicodedata.category(behind) in _MARKS:
        return True
    if "\u1160" <= behind <= "\u11ff" or "\U0001f3fb" <= behind <= "\U0001f3ff":
        return True
    if before == "\r" and behind == "\n":
        return True
    return _is_regional(before) and _is_regional(behind) and _regionals_before(text, start, at) % 2 == 1


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regionals_before(text: str, start: int, at: int) -> int:
    first = at
    while first > start and _is_regional(text[first - 1]):
        first -= 1
    return at - first


def sentences(text: str) -> list[tuple[int, int]]:
    """Without blank ends; a text in which no sentence ends goes by its lines."""
    return _parts(text, _SENTENCES if _SENTENCE_ENDS.search(text) else _LINES)


def lines(text: str) -> list[tuple[int, int]]:
    """Without blank ends and blank lines."""
    return _parts(text, _LINES)


def _parts(text: str, boundary: re.Pattern[str]) -> list[tuple[int, int]]:
    ends = [*(match.end() for match in boundary.finditer(text)), len(text)]
    found = (trim(text, start, end) for start, end in pairwise((0, *ends)))
    return [part for part in found if part is not None]


def whole_around(parts: Sequence[tuple[int, int]], focus: int, limit: int) -> tuple[int, int] | None:
    """The part that `focus` lies in, however long, with as many behind it, then before it, as `limit` allows."""
    if not parts:
        return None
    first = last = next((n for n, (_, end) in enumerate(parts) if focus < end), len(parts) - 1)
    while last + 1 < len(parts) and parts[last + 1][1] - parts[first][0] <= limit:
        last += 1
    while first > 0 and parts[last][1] - parts[first - 1][0] <= limit:
        first -= 1
    return parts[first][0], parts[last][1]
