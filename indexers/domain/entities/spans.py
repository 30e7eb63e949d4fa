"""Spans of overlapping windows → the mentions of one text: each place named once. Pure.

Patterns first, then the model's surest. What two neighbouring windows both saw is judged by the one that saw more
around it: a name at a window's border is often a piece of a longer one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indexers.domain.entities.windows import Window


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LabelledSpan:
    """text[start:end] named `label`; code points; score 0..1."""

    start: int
    end: int
    label: str
    score: float


def merge_windows(found: Sequence[tuple[Window, Iterable[LabelledSpan]]]) -> list[LabelledSpan]:
    """`found`: windows in the text's order with their spans, in offsets of the text. Sorted.

    The same span and label of two windows counts once, with the higher score. A span that crosses one of a window
    with more context around it is left out, unless that window found it too.
    """
    best: dict[tuple[int, int, str], float] = {}
    kept: list[dict[tuple[int, int, str], float]] = []
    for _, spans in found:
        kept.append({})
        for span in spans:
            key = (span.start, span.end, span.label)
            kept[-1][key] = max(kept[-1].get(key, 0.0), span.score)
    for index, (window, _) in enumerate(found):
        neighbours = [n for n in (index - 1, index + 1) if 0 <= n < len(found)]
        for key, score in kept[index].items():
            if not any(_outseen(key, window, found[n][0], kept[n]) for n in neighbours):
                best[key] = max(best.get(key, 0.0), score)
    return sorted(
        LabelledSpan(start=start, end=end, label=label, score=score)
        for (start, end, label), score in best.items()
    )


def select_flat(
    patterns: Iterable[LabelledSpan], candidates: Iterable[LabelledSpan]
) -> tuple[list[LabelledSpan], list[LabelledSpan]]:
    """Spans that don't overlap: (of the patterns, of the model), each by start.

    A pattern's span beats the model's. Among equals the higher score goes first, then the longer, then the earlier,
    then the label's name.
    """
    taken: list[tuple[int, int]] = []
    chosen = tuple(
        [span for span in _by_rank(group) if _take(taken, span)] for group in (patterns, candidates)
    )
    return sorted(chosen[0]), sorted(chosen[1])


def _outseen(
    key: tuple[int, int, str], window: Window, other: Window, theirs: dict[tuple[int, int, str], float]
) -> bool:
    """The other window has the place whole, with more around it, and says something else of it."""
    start, end, _ = key
    if not (other.start <= start and end <= other.end) or key in theirs:
        return False
    if _context(other, start, end) <= _context(window, start, end):
        return False
    return any(a < end and start < b for a, b, _ in theirs)


def _context(window: Window, start: int, end: int) -> int:
    """Code points to the nearer border."""
    return min(start - window.start, window.end - end)


def _by_rank(spans: Iterable[LabelledSpan]) -> list[LabelledSpan]:
    return sorted(spans, key=lambda s: (-s.score, s.start - s.end, s.start, s.label))


def _take(taken: list[tuple[int, int]], span: LabelledSpan) -> bool:
    """`taken` is sorted and free of overlaps: only the neighbours can collide."""
    at = bisect_left(taken, (span.start, span.end))
    if at < len(taken) and taken[at][0] < span.end:
        return False
    if at > 0 and taken[at - 1][1] > span.start:
        return False
    insort(taken, (span.start, span.end))
    return True
