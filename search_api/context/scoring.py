"""How much each part of a document has to do with a question: its words, what a vector found, evidence. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log
from typing import Final

from indexers.domain.excerpts import MAX_OCCURRENCES, occurrences, query_terms
from indexers.domain.folding import fold_text
from indexers.domain.prose import is_stop_word
from search_api.context.blocks import Heading

#: What a word in a heading above counts, against one in the text itself.
HEADING_SHARE: Final = 0.5
#: What a chunk that the vector found counts, and what a path that led here says; all words together are 1.
SPAN_WORTH: Final = 0.5
EVIDENCE_WORTH: Final = 0.5
_HEADINGS_LOOKED_AT: Final = 200
_EVIDENCE_LOOKED_AT: Final = 8
_EVIDENCE_WORDS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Code points of the document's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What a document was found for."""

    query: str
    #: Chunks that a vector found.
    spans: tuple[Span, ...] = ()
    #: Names, titles and sentences by which a path led here.
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """text[start:end], in the order of the text, never overlapping."""

    start: int
    end: int
    section: int
    #: What a part is shown for stands from here on, if it can: below the head of a table.
    shown_from: int


@dataclass(slots=True)
class Worth:
    """`score` 0: nothing that is known speaks for the part. `place`: offset in the text of what it is shown for."""

    score: float = 0.0
    place: int | None = None
    #: Of the word at `place`: the rarest is shown.
    _rarity: float = field(default=0.0, repr=False)

    def add(self, score: float, place: int | None = None, rarity: float = 0.0) -> None:
        self.score += score
        if place is not None and (self.place is None or rarity > self._rarity):
            self.place, self._rarity = place, rarity


def worths(text: str, parts: Sequence[Part], headings: Sequence[Heading], sought: Sought) -> list[Worth]:
    """One a part. Words: the share of the question's weight that the part holds, a rare word weighing more."""
    found = [Worth() for _ in parts]
    starts = [part.start for part in parts]
    below = _Sections(parts, headings)
    held = {word: _holding(places, parts, starts, below) for word, places in _places(text, sought.query)}
    weights = {word: 1 / (1 + log(len(numbers))) for word, numbers in held.items() if numbers}
    total = sum(weights.values())
    for word, weight in weights.items():
        for number, place in held[word].items():
            share = HEADING_SHARE if place is None else 1.0
            is_below = place is not None and place >= parts[number].shown_from
            found[number].add(share * weight / total, place, weight if is_below else 0.0)
    for span in sought.spans:
        for number in _touching(parts, starts, span):
            found[number].add(SPAN_WORTH)
    for start, end in _said(text, sought.evidence):
        for number in _touching(parts, starts, Span(start=start, end=end)):
            found[number].add(EVIDENCE_WORTH, max(start, parts[number].start))
    return found


def _places(text: str, query: str) -> Iterator[tuple[str, list[int]]]:
    """The question's words of content (all, where it has no others) and where they begin in the text."""
    words = query_terms(query)
    content = [word for word in words if not is_stop_word(word)]
    folded, origin = fold_text(text)
    for word in content or words:
        yield word, [origin(start) for start, _ in islice(occurrences(folded, word), MAX_OCCURRENCES)]


def _holding(
    places: Iterable[int], parts: Sequence[Part], starts: Sequence[int], below: _Sections
) -> dict[int, int | None]:
    """Parts that hold a word: its first place there, or None where only a heading above has it."""
    inside: dict[int, int | None] = {}
    outside: list[int] = []
    for place in places:
        number = bisect_right(starts, place) - 1
        if number >= 0 and place < parts[number].end:
            inside[number] = _first(inside.get(number), place, parts[number].shown_from)
        else:
            outside.append(place)
    under: dict[int, int | None] = dict.fromkeys(below.parts_under(outside))
    return under | inside


def _first(known: int | None, place: int, shown_from: int) -> int:
    """Of two places in a part; one above `shown_from` comes last."""
    return place if known is None else min(known, place, key=lambda at: (at < shown_from, at))


class _Sections:
    """Which parts stand under a heading, in the sections below its own too."""

    def __init__(self, parts: Sequence[Part], headings: Sequence[Heading]) -> None:
        self._sections = [part.section for part in parts]
        self._headings = headings
        self._starts = [heading.start for heading in headings]

    def parts_under(self, places: Iterable[int]) -> Iterator[int]:
        """Of the headings in which these places lie."""
        numbers = dict.fromkeys(bisect_right(self._starts, place) - 1 for place in places)
        for number in islice(numbers, _HEADINGS_LOOKED_AT):
            if number < 0:
                continue
            level, behind = self._headings[number].level, number + 1
            while behind < len(self._headings) and self._headings[behind].level > level:
                behind += 1
            first = bisect_left(self._sections, number + 1)
            yield from range(first, bisect_right(self._sections, behind))


def _touching(parts: Sequence[Part], starts: Sequence[int], span: Span) -> Iterator[int]:
    number = max(bisect_right(starts, span.start) - 1, 0)
    while number < len(parts) and parts[number].start < span.end:
        if parts[number].end > span.start:
            yield number
        number += 1


def _said(text: str, evidence: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where each stands first, however its case and white space are written."""
    for line in islice(dict.fromkeys(evidence), _EVIDENCE_LOOKED_AT):
        words = line.split()[:_EVIDENCE_WORDS]
        found = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE) if words else None
        if found is not None:
            yield found.span()
