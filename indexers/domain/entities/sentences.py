"""The sentence around a name: what a reader is shown as its evidence. Pure.

A block is a paragraph, or a list item, a table row, a heading, a line of frontmatter. A sentence never leaves its
block. Positions are code points of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import regex

#: Code points of a sentence; a longer one is shown as a part around the name, cut between words.
SENTENCE_MAX_CHARS: Final = 300
#: How far before and behind a name its block is looked for: no more than a sentence shows.
_REACH: Final = 400

_ITEM: Final = r"[ \t>]*+(?:[-*+]|\d{1,9}[.)])[ \t]"
#: Lines that are blocks by themselves: blank ones, headings, table rows, rules and fences.
_ALONE: Final = r"[ \t>]*+(?:\r?$|\#{1,6}(?:[ \t]|\r?$)|\||(?:[-=*_][ \t]*+){3,}+\r?$|`{3}|~{3})"
#: Where blocks begin: at an item's mark, at and behind a line alone.
_BREAK: Final = re.compile(rf"^(?:(?P<item>{_ITEM})|{_ALONE}[^\n]*+(?:\n|\Z))", re.MULTILINE)
_LEAD: Final = re.compile(
    r"[ \t>]*+(?:#{1,6}[ \t]++|(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)++(?:\[[ xX]\][ \t]++)?)?"
)
_END: Final = re.compile(r"[.!?…]++[\"'”’»)\]*_`]*+(?=\s|$)|[。！？]++[\"'”’»)\]」』）]*+")
_WORD_BEFORE: Final = re.compile(r"(?:[^\W\d_]|(?<=\w)\.)+$")
#: With these a sentence goes on, whatever follows.
_ABBREVIATIONS: Final = frozenset(
    re.findall(r"\S+", "e.g eg i.e ie cf vs viz approx mr mrs ms dr prof st fig figs pp vol al resp incl")
)
#: How many characters an abbreviation may have, for the look back.
_WORD_REACH: Final = 12
_GRAPHEME: Final = regex.compile(r"\X")


def sentence_around(
    text: str, start: int, end: int, *, body_start: int = 0, limit: int = SENTENCE_MAX_CHARS
) -> tuple[int, int]:
    """The sentence that holds text[start:end]; always the whole of it, even where that is over `limit`.

    Ends with `.`, `!`, `?` before white space, or with their CJK forms; not behind an abbreviation, an initial
    (`J. Smith`), or where a small letter goes on. Neither end cuts a grapheme that the name's own ends don't cut.
    """
    left, right = block_around(text, start, end, body_start=body_start)
    right = max(right, end)
    for match in _END.finditer(text, left, right):
        if match.end() <= start:
            left = match.end() if _ends(text, match, right) else left
        elif match.end() >= end and match.start() >= start and _ends(text, match, right):
            right = match.end()
            break
    return _fitted(text, _trimmed(text, (left, right), (start, end)), (start, end), limit)


def sentence_text(text: str, start: int, end: int) -> str:
    """A sentence on one line."""
    return " ".join(text[start:end].split())


def block_around(text: str, start: int, end: int, *, body_start: int = 0) -> tuple[int, int]:
    """The block in which text[start:end] begins, without its mark (`- `, `## `); at most `_REACH` on each side."""
    floor = max(start - _REACH, body_start if start >= body_start else 0)
    ceiling = min(max(end, start) + _REACH, len(text))
    line = text.rfind("\n", floor, start) + 1 or floor
    first, last = (floor, ceiling) if start >= body_start else (line, _line_end(text, start, ceiling))
    for begin in _block_starts(text, first, last):
        if begin > start:
            last = begin
            break
        first = begin
    lead = _LEAD.match(text, first, last)
    if lead is not None and lead.end() <= start:
        first = lead.end()
    return first, last


def _block_starts(text: str, first: int, last: int) -> Iterator[int]:
    # From the line's beginning on, if that is near: a part of a line says nothing about it.
    low = max(first - _REACH, 0)
    newline = text.rfind("\n", low, first)
    begin = newline + 1 if newline >= 0 or low == 0 else first
    for match in _BREAK.finditer(text, begin, last):
        if match.start() >= first:
            yield match.start()
        if match["item"] is None and first < match.end() < last:
            yield match.end()


def _line_end(text: str, at: int, ceiling: int) -> int:
    found = text.find("\n", at, ceiling)
    return found if found >= 0 else ceiling


def _ends(text: str, match: re.Match[str], limit: int) -> bool:
    if match[0][0] != "." or match[0].startswith(".."):
        return True
    after = text[match.end() : min(match.end() + 20, limit)].lstrip()
    if after[:1].islower():
        return False
    word = _WORD_BEFORE.search(text, max(match.start() - _WORD_REACH, 0), match.start())
    if word is None:
        return True
    said = word[0].lower()
    return said not in _ABBREVIATIONS and not (len(said) == 1 and word[0].isupper() and word[0].isascii())


def _trimmed(text: str, outer: tuple[int, int], inner: tuple[int, int]) -> tuple[int, int]:
    left, right = outer
    while left < inner[0] and text[left].isspace():
        left += 1
    while right > inner[1] and text[right - 1].isspace():
        right -= 1
    return left, right


def _fitted(text: str, outer: tuple[int, int], inner: tuple[int, int], limit: int) -> tuple[int, int]:
    """At most `limit` code points around `inner`, cut between words where there are any."""
    (left, right), (start, end) = outer, inner
    if right - left > limit:
        spare = max(limit - (end - start), 0)
        low = max(left, start - spare // 2)
        high = min(right, low + max(limit, end - start))
        low = max(left, min(low, high - limit))
        left = low if low == left else _after_blank(text, low, start)
        right = high if high == right else _before_blank(text, end, high)
        left, right = _trimmed(text, (left, right), inner)
    while left < start and not is_grapheme_start(text, left):
        left += 1
    while right > end and not is_grapheme_start(text, right):
        right -= 1
    return left, right


def _after_blank(text: str, low: int, start: int) -> int:
    if text[low - 1].isspace():
        return low
    return next((at + 1 for at in range(low, start) if text[at].isspace()), low)


def _before_blank(text: str, end: int, high: int) -> int:
    if text[high].isspace():
        return high
    return next((at for at in range(high - 1, end - 1, -1) if text[at].isspace()), high)


def is_grapheme_start(text: str, at: int) -> bool:
    """Whether no grapheme reaches over `at` (UAX 29, told from at most 64 code points before it)."""
    if at <= 0 or at >= len(text):
        return True
    if text[at].isascii() and text[at - 1].isascii():
        return text[at - 1 : at + 1] != "\r\n"
    graphemes = _GRAPHEME.findall(text[max(at - 64, 0) : at + 1])
    return len(graphemes[-1]) == 1
