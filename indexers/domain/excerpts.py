"""The part of a text that shows why it was found: line or paragraph around the query's terms, with offsets.

Terms are compared as the index compares them: NFC, case-folded, English by a light stem, Korean and CJK as
parts of a word (particles are attached), codes such as `ORA-01555` whole. The head of the body is only shown
when no term stands anywhere. What a page shows beside the excerpt (title, tags) isn't shown again: frontmatter
only where nothing else holds a term, a heading only with the paragraph under it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from indexers.domain.folding import fold_text, nfc_fold
from indexers.domain.prose import TOKEN, strip_particle

MAX_TERMS = 32
#: Occurrences of one term that are looked at.
MAX_OCCURRENCES = 2_000

CJK = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f]")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_SPACE = re.compile(r"\s")
_CUT_WORD = 20
_WORD_PART = re.compile(r"\w+")
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e")
_RESTORED = {"ied": "y", "ies": "y"}
#: Verb forms that share no stem; the index knows them too (`indexers.opensearch.analysis`).
_IRREGULAR = {"ran": "run", "written": "writ", "indices": "index"}
#: How much less a term counts that stands in a heading: a paragraph with the same terms goes before it.
_HEADING_COSTS = 0.6
_HEADING = re.compile(r" {0,3}#{1,6}[ 	][^\n]*(?:\n|\Z)")
_BLANK = re.compile(r"(?:[ \t]*\n)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """text[start:end]; `matched`: the query's terms that stand in it, in the query's order."""

    text: str
    start: int
    end: int
    matched: tuple[str, ...]


class FoldedText(NamedTuple):
    """A text beside its folded form, made once for all that is looked for in it."""

    text: str
    folded: str
    #: From positions of `folded` to those of `text`.
    origin: Callable[[int], int]

    @classmethod
    def of(cls, text: str) -> FoldedText:
        return cls(text, *fold_text(text))


#: Start, end and number of the term: sorts by where it stands. Plain tuples: a page makes hundreds.
_Hit = tuple[int, int, int]


def excerpt(text: str, query: str, *, max_chars: int, body_start: int = 0) -> Excerpt:
    """At most `max_chars` of the text, around the place where most (and the rarest) terms stand together.

    `body_start`: where the frontmatter ends.
    """
    body = FoldedText.of(text[body_start:])
    return excerpt_of(body, query_terms(query), max_chars=max_chars, front=text[:body_start])


def excerpt_of(body: FoldedText, terms: Sequence[str], *, max_chars: int, front: str = "") -> Excerpt:
    """`excerpt` of a text whose body is folded already, after `front`, for terms of `query_terms`."""
    shown = _excerpt(body, terms, max_chars)
    if not front:
        return shown
    if not shown.matched:
        before = _excerpt(FoldedText.of(front), terms, max_chars)
        if before.matched:
            return before
    start, end = shown.start + len(front), shown.end + len(front)
    return Excerpt(text=shown.text, start=start, end=end, matched=shown.matched)


def _excerpt(whole: FoldedText, terms: Sequence[str], max_chars: int) -> Excerpt:
    text, folded, origin = whole
    hits = _hits(folded, terms)
    if not hits:
        return _head(text, max_chars)
    first, last = _best(hits, max_chars, folded)
    shown = hits[first : last + 1]
    start, end = origin(hits[first][0]), max([origin(end) for _, end, _ in shown])
    matched = tuple([terms[number] for number in sorted({number for _, _, number in shown})])
    heading = _heading_around(text, start, end)
    if heading is not None:
        return _with_paragraph(text, heading, max_chars, matched)
    return _window(text, start, end, max_chars, matched)


def query_terms(query: str, *, limit: int = MAX_TERMS) -> tuple[str, ...]:
    """Folded words of a query, codes whole, Korean without particles; each once."""
    words = (word.strip("_") for word in TOKEN.findall(nfc_fold(query)))
    return tuple(dict.fromkeys(strip_particle(word) for word in words if word))[:limit]


@lru_cache(maxsize=4_096)
def light_stem(word: str) -> str:
    """English endings off (`docked`, `docking` → `dock`); short words and other scripts stay."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for suffix in _SUFFIXES:
        stem = word.removesuffix(suffix)
        if suffix in _RESTORED and stem != word and len(stem) >= 2:
            return stem + _RESTORED[suffix]
        if stem != word and len(stem) >= 3:
            return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    return word


def _hits(folded: str, terms: Sequence[str]) -> list[_Hit]:
    """In the order of the text."""
    hits: list[_Hit] = []
    for number, term in enumerate(terms):
        found = islice(occurrences(folded, term), MAX_OCCURRENCES)
        hits += [(start, end, number) for start, end in found]
    hits.sort()
    return hits


def occurrences(folded: str, term: str) -> Iterator[tuple[int, int]]:
    """Where the term stands, by start and end; a word in any form of its own, form by form."""
    roots = _roots_of(term)
    if roots.is_cjk:
        exact = list(_substrings(folded, term))
        yield from exact or _bigrams(folded, term)
        return
    for form in roots.whole:
        if form in folded:
            yield from _begun_with(folded, form, term, roots.stem, endings=False)
    if roots.begin is not None and roots.begin in folded:
        yield from _begun_with(folded, roots.begin, term, roots.stem, endings=True)


def may_occur(folded: str, term: str) -> bool:
    """False where `occurrences` finds nothing, but for pairs of letters of a CJK word."""
    roots = _roots_of(term)
    if roots.begin is not None and roots.begin in folded:
        return True
    for form in roots.whole:  # noqa: SIM110 - asked for every word and file of a page
        if form in folded:
            return True
    return False


def occurs(folded: str, term: str) -> bool:
    """Whether `occurrences` finds anything, but for pairs of letters of a CJK word."""
    if not may_occur(folded, term):
        return False
    return _roots_of(term).is_cjk or next(occurrences(folded, term), None) is not None


class _Roots(NamedTuple):
    """What a text holds that holds a term: made once a term."""

    is_cjk: bool
    stem: str
    #: Stand as they are.
    whole: tuple[str, ...]
    #: May go on with an ending.
    begin: str | None = None


@lru_cache(maxsize=4_096)
def _roots_of(term: str) -> _Roots:
    if CJK.search(term):
        return _Roots(is_cjk=True, stem=term, whole=(term,))
    stem = light_stem(term)
    if not (stem.isalpha() and stem.isascii()):
        return _Roots(is_cjk=False, stem=stem, whole=(stem,))
    # An empty begin would be found everywhere, without end.
    return _Roots(is_cjk=False, stem=stem, whole=_forms_of(stem), begin=stem.removesuffix("y") or stem)


def _begun_with(folded: str, root: str, term: str, stem: str, *, endings: bool) -> Iterator[tuple[int, int]]:
    """Whole words, by plain search: a pattern for each word of each query costs more to compile than to use."""
    start = folded.find(root)
    while start >= 0:
        end = root_end = start + len(root)
        if start and folded[start - 1].isalnum():
            start = folded.find(root, root_end)
            continue
        while endings and folded[end : end + 1] in _LETTERS:
            end += 1
        word = folded[start:end]
        bounded = not folded[end : end + 1].isalnum() or CJK.match(folded, end)
        if bounded and (word == term or light_stem(word) == stem):
            yield start, end
        start = folded.find(root, root_end)


@lru_cache(maxsize=4_096)
def _forms_of(stem: str) -> tuple[str, ...]:
    return tuple(form for form, its_stem in _IRREGULAR.items() if its_stem == stem)


def _substrings(folded: str, term: str) -> Iterator[tuple[int, int]]:
    at = folded.find(term)
    while at >= 0:
        yield at, at + len(term)
        at = folded.find(term, at + len(term))


def _bigrams(folded: str, term: str) -> Iterator[tuple[int, int]]:
    """The index matches CJK words by pairs of letters: a longer word may be found by its parts."""
    for part in _WORD_PART.findall(term):
        for at in range(len(part) - 1):
            yield from _substrings(folded, part[at : at + 2])


def _best(hits: Sequence[_Hit], max_chars: int, folded: str) -> tuple[int, int]:
    """The run of hits within the window whose terms weigh most: rare terms more, one paragraph before two."""
    frequency: dict[int, int] = {}
    for _, _, term in hits:
        frequency[term] = frequency.get(term, 0) + 1
    worths = {term: 1 + 1 / count for term, count in frequency.items()}
    counts = dict.fromkeys(worths, 0)
    headed = _headed(hits, folded)
    weight, first, best, best_weight = 0.0, 0, (0, 0), -1.0
    for last, (_, end, term) in enumerate(hits):
        if not counts[term]:
            weight += worths[term]
        counts[term] += 1
        while first < last and (end - hits[first][0] > max_chars or counts[hits[first][2]] > 1):
            left = hits[first][2]
            counts[left] -= 1
            if not counts[left]:
                weight -= worths[left]
            first += 1
        crosses = folded.find("\n\n", hits[first][0], end) >= 0
        worth = (
            weight - 0.5 * crosses - _HEADING_COSTS * (headed[last + 1] - headed[first]) / (last + 1 - first)
        )
        if worth > best_weight + 1e-9:
            best_weight, best = worth, (first, last)
    return best


def _headed(hits: Sequence[_Hit], folded: str) -> list[int]:
    """How many of the hits before each, and of all, stand in headings."""
    if "#" not in folded:
        return [0] * (len(hits) + 1)
    counts, is_heading, line_end = [0], False, -1
    for start, _, _ in hits:
        if start > line_end:
            is_heading = _in_heading(folded, start)
            line_end = folded.find("\n", start)
            if line_end < 0:
                line_end = len(folded)
        counts.append(counts[-1] + is_heading)
    return counts


def _head(text: str, max_chars: int) -> Excerpt:
    """The first paragraph that is no heading, and what follows."""
    start = _past_blank(text, 0)
    while (heading := _HEADING.match(text, start)) and text[heading.end() :].strip():
        start = _past_blank(text, heading.end())
    return _cut(text, start, max_chars, ())


def _past_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _in_heading(text: str, position: int) -> bool:
    return _HEADING.match(text, text.rfind("\n", 0, position) + 1) is not None


def _heading_around(text: str, start: int, end: int) -> re.Match[str] | None:
    heading = _HEADING.match(text, text.rfind("\n", 0, start) + 1)
    return heading if heading is not None and end <= heading.end() else None


def _with_paragraph(text: str, heading: re.Match[str], max_chars: int, matched: tuple[str, ...]) -> Excerpt:
    """A heading with what stands under it; the first of a note is its title, which is shown already."""
    below = _past_blank(text, heading.end())
    has_text = below < len(text) and _HEADING.match(text, below) is None
    is_title = heading[0].lstrip().startswith("# ")
    return _cut(text, below if is_title and has_text else heading.start(), max_chars, matched)


def _cut(text: str, start: int, max_chars: int, matched: tuple[str, ...]) -> Excerpt:
    """From here on, cut between words."""
    right = min(len(text), start + max_chars)
    if right < len(text) and not text[right].isspace():
        space = text.rfind(" ", max(start + 1, right - _CUT_WORD), right)
        right = space if space > start else right
    return _trimmed(text, start, right, matched)


def _window(text: str, start: int, end: int, max_chars: int, matched: tuple[str, ...]) -> Excerpt:
    """The hit's paragraph where it fits, else its line, else words around the hit."""
    outer = (0, len(text))
    if matched:
        outer = _enclosing(text, start, end, "\n\n")
        if outer[1] - outer[0] <= max_chars:
            return _trimmed(text, *outer, matched)
        line_left, line_right = _enclosing(text, start, end, "\n")
        if line_right - line_left <= max_chars:
            return _trimmed(text, *_whole_lines(text, outer, (line_left, line_right), max_chars), matched)
    spare = max(max_chars - (end - start), 0)
    right = min(outer[1], max(outer[0], start - spare // 2) + max_chars)
    left = max(outer[0], right - max_chars)
    if left and not text[left - 1].isspace():
        gap = _SPACE.search(text, left, min(start, left + _CUT_WORD))
        left = gap.end() if gap else left
    if right < len(text) and not text[right].isspace():
        space = text.rfind(" ", max(end, right - _CUT_WORD), right)
        right = space if space > left else right
    return _trimmed(text, left, right, matched)


def _enclosing(text: str, start: int, end: int, mark: str) -> tuple[int, int]:
    left, right = text.rfind(mark, 0, start), text.find(mark, end)
    return (left + len(mark) if left >= 0 else 0), (right if right >= 0 else len(text))


def _whole_lines(text: str, outer: tuple[int, int], line: tuple[int, int], max_chars: int) -> tuple[int, int]:
    """The line with its neighbours of the same paragraph, as many whole ones as fit, on both sides alike."""
    spare = (max_chars - (line[1] - line[0])) // 2
    above = text.find("\n", max(outer[0], line[0] - spare) - 1, line[0])
    below = text.rfind("\n", line[1], min(outer[1], line[1] + spare) + 1)
    return (above + 1 if above >= 0 else line[0]), (below if below >= 0 else line[1])


def _trimmed(text: str, start: int, end: int, matched: tuple[str, ...]) -> Excerpt:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Excerpt(text=text[start:end], start=start, end=end, matched=matched)
