"""A namespace's own regular expressions: checked when they are set, bounded in time when they are used.

The time is the only thing here that isn't a function of the values: a pattern that runs out of it gives nothing for
that text and is told of, so that no half of its names is stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

import regex

from indexers.domain.entities.labels import PATTERN_MAX_CHARS, PATTERNS_MAX, PatternRule

#: Seconds of one pattern on one text, and of all patterns on one text (each has an equal share).
PATTERN_SECONDS: Final = 0.25
TEXT_SECONDS: Final = 2.0
#: How often a counted repeat may say its part, nested and neighbouring ones multiplied: compiling costs memory.
REPEATS_MAX: Final = 10_000
#: Matches of one pattern in one text that are looked at.
MATCHES_MAX: Final = 20_000
_COUNT: Final = regex.compile(r"\{(\d+)(?:,\d*)?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPattern:
    label: str
    compiled: regex.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternMatches:
    """Spans of one pattern, leftmost first; none where `timed_out`."""

    label: str
    spans: tuple[tuple[int, int], ...]
    timed_out: bool


@lru_cache(maxsize=256)
def compile_patterns(rules: tuple[PatternRule, ...]) -> tuple[CompiledPattern, ...]:
    """In the order given. ValueError says which pattern is wrong, where and why."""
    if len(rules) > PATTERNS_MAX:
        raise ValueError(f"{len(rules)} patterns: a namespace has at most {PATTERNS_MAX}")
    return tuple(CompiledPattern(label=rule.label, compiled=_compile(rule)) for rule in rules)


def find_matches(text: str, patterns: Sequence[CompiledPattern]) -> list[PatternMatches]:
    """By pattern in the order given; takes at most about `TEXT_SECONDS`. Lets other threads run meanwhile."""
    seconds = min(PATTERN_SECONDS, TEXT_SECONDS / max(len(patterns), 1))
    return [_find(text, pattern, seconds) for pattern in patterns]


def _find(text: str, pattern: CompiledPattern, seconds: float) -> PatternMatches:
    found = pattern.compiled.finditer(text, timeout=seconds, concurrent=True)
    try:
        spans = tuple(match.span() for match in islice(found, MATCHES_MAX) if match.end() > match.start())
    except (TimeoutError, MemoryError):
        return PatternMatches(label=pattern.label, spans=(), timed_out=True)
    return PatternMatches(label=pattern.label, spans=spans, timed_out=False)


def _compile(rule: PatternRule) -> regex.Pattern[str]:
    where = f"pattern of {rule.label!r}"
    if not 0 < len(rule.pattern) <= PATTERN_MAX_CHARS:
        raise ValueError(f"{where}: give 1 to {PATTERN_MAX_CHARS} characters")
    counts = [max(int(count[:9]), 1) for count in _COUNT.findall(rule.pattern)]
    if math.prod(counts) > REPEATS_MAX:
        raise ValueError(f"{where}: its counted repeats multiply to more than {REPEATS_MAX:,}")
    try:
        compiled = regex.compile(rule.pattern)
        empty = compiled.search("", timeout=PATTERN_SECONDS) is not None
    except regex.error as error:
        raise ValueError(f"{where} is no regular expression: {error}") from error
    except (RecursionError, OverflowError, TimeoutError) as error:
        raise ValueError(f"{where} is too complex") from error
    if empty:
        raise ValueError(f"{where} finds the empty text: let it ask for at least one character")
    return compiled
