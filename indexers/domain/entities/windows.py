"""A text's words, and windows of them that a model reads one at a time. Pure.

A word is what the model was trained on: letters, digits and `_`, joined by single hyphens, or one other sign. A window
holds whole sentences, about as many words as the model's training texts had: it names things better in one sentence
than among many (docs/explanation/entities.md). A sentence too long for one window is read in pieces that overlap.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

#: As `gliner` splits, but that an accent written as a sign of its own (NFD) stays with its letter.
WORD: Final = re.compile(r"\w[\w\u0300-\u036f]*(?:[-_]\w[\w\u0300-\u036f]*)*|\S")
#: Short sentences share a window up to this many words.
FULL_WORDS: Final = 20
#: Most words of a window, and words that two pieces of one sentence share: more than the longest name (10 words).
MAX_WORDS: Final = 60
OVERLAP_WORDS: Final = 20
#: Lines at least this long (code points) may be one paragraph that an editor wrapped.
_WRAPPED_LINE: Final = 60
_SENTENCE_END: Final = re.compile(r"([.!?…。！？])[\"')\]}»”’」』*_]*$")
_BLOCK_SIGN: Final = re.compile(r"[ \t]*(?:[-*+>#|]|\d{1,9}[.)])")
_ABBREVIATION: Final = re.compile(
    r"(?:^|\W)(?:[A-Z]|(?i:e\.g|i\.e|dr|mr|mrs|ms|prof|st|vs|no|nr|approx|cf|al|etc))\.$"
)


class Word(NamedTuple):
    """text[start:end], code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Words first..last (exclusive) of the text, which are text[start:end] (code points)."""

    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """In the text's order. `skipped`: words that no window holds, since each alone has more tokens than fit."""

    windows: tuple[Window, ...]
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLimits:
    """ValueError where no window could be cut."""

    max_tokens: int
    max_words: int = MAX_WORDS
    full_words: int = FULL_WORDS
    overlap: int = OVERLAP_WORDS

    def __post_init__(self) -> None:
        if min(self.max_tokens, self.max_words, self.full_words) < 1 or self.overlap < 0:
            raise ValueError(f"no window can be cut: {self}")


def split_words(text: str) -> list[Word]:
    """A slice from the start of one word to the end of another has exactly the words between them."""
    return [Word(*match.span()) for match in WORD.finditer(text)]


def cut_windows(text: str, words: Sequence[Word], tokens: Sequence[int], limits: WindowLimits) -> Windows:
    """`text` as it was written, with the markup that shows its blocks; `words` may come from a masked reading of it.

    `tokens[i]`: what word i costs. No window has more words or tokens than the limits say.

    Every word but the skipped ones is in a window. A run of up to `overlap` words of one sentence is whole in one,
    unless half a window has fewer (then a run of so many is).
    """
    totals = [0, *accumulate(tokens)]
    too_long = [i for i, cost in enumerate(tokens) if cost > limits.max_tokens]
    windows: list[Window] = []
    for before, after in pairwise((-1, *too_long, len(words))):
        sentences = _sentences(text, words, before + 1, after)
        for first, last in _pack(sentences, totals, limits):
            windows.append(Window(first=first, last=last, start=words[first].start, end=words[last - 1].end))
    return Windows(windows=tuple(windows), skipped=len(too_long))


def _pack(
    sentences: Iterator[tuple[int, int]], totals: Sequence[int], limits: WindowLimits
) -> Iterator[tuple[int, int]]:
    """Whole sentences up to `full_words`; a longer one alone, in overlapping pieces if it doesn't fit."""

    def fits(first: int, last: int, most: int) -> bool:
        return last - first <= most and totals[last] - totals[first] <= limits.max_tokens

    pending: tuple[int, int] | None = None
    for start, last in sentences:
        if pending and fits(pending[0], last, min(limits.full_words, limits.max_words)):
            pending = (pending[0], last)
            continue
        if pending:
            yield pending
        first = start
        while not fits(first, last, limits.max_words):
            end = bisect_right(totals, totals[first] + limits.max_tokens, first + 1, last + 1) - 1
            end = min(end, first + limits.max_words)
            yield first, end
            shared = min(limits.overlap, (end - first) // 2)
            # No more shared than leaves room for the next word.
            first = max(end - shared, bisect_left(totals, totals[end + 1] - limits.max_tokens))
        pending = (first, last)
    if pending:
        yield pending


def _sentences(text: str, words: Sequence[Word], first: int, last: int) -> Iterator[tuple[int, int]]:
    start = first
    for at in range(first + 1, last):
        end, begin = words[at - 1].end, words[at].start
        if end < begin and _ends_between(text, end, begin):
            yield start, at
            start = at
    if start < last:
        yield start, last


def _ends_between(text: str, end: int, start: int) -> bool:
    """Whether a sentence, or a block of Markdown, ends between two words; text[end:start] is blanks and markup."""
    newlines = text.count("\n", end, start)
    if newlines > 1 or (newlines and _line_ends(text, end, start)):
        return True
    tail = text[max(0, end - 12) : end]
    sign = _SENTENCE_END.search(tail)
    if sign is None or text[start].islower():
        return False
    return sign[1] != "." or _ABBREVIATION.search(tail[: sign.end(1)]) is None


def _line_ends(text: str, end: int, start: int) -> bool:
    """Not so where an editor wrapped a paragraph: after a long line of plain text, before another."""
    begin = text.rfind("\n", 0, end) + 1
    below = text.find("\n", end) + 1
    return (
        end - begin < _WRAPPED_LINE
        or text[begin] in "#|"
        or _BLOCK_SIGN.match(text, below, start + 2) is not None
    )
