r"""Rules in front of the model: names that have a form. Pure, but for the time limit of a namespace's own patterns.

| label | what | not |
| --- | --- | --- |
| url | `scheme://…`, with balanced brackets | one with a password (its place is taken all the same) |
| email | `name@host.tld` | `@name`, `git@host:repo` |
| path | `/a/b`, `~/a`, `./a`, `../a`, `C:\a`, `\\host\a`, `dir/file.ext` | `and/or`, `24/7`, dates, `file.ext` alone |
| host | IPv4, IPv6, `a.example.com`, `db-1:5432`; the port belongs to it | `main.py:12`, `std::vector`, times |
| incident | `INC-2041`, `INC0012345` | |
| code | `PAY-113`, `QX-4103B`, `ORA-01555`, `CVE-2024-3094`, `ERR_TIMEOUT`, `E1234`, `HTTP 503` | `UTF-8`, `Q3-2026` |
| version | `v1.2`, `1.2.3`, `3.5.0-rc.1` | dates, times, `1.234.567`, the number of a heading |

One span at most per place. A namespace's own patterns go first, in their order; then these, in the order of the table.
What an earlier rule took, a later one leaves, whole: an incident in a URL is a part of the URL. Within a rule the
leftmost goes first and takes as much as it can. Letters of Hangul, Han and kana may stand beside a name without a
blank (`INC-2041에서` holds `INC-2041`), marks behind it don't belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from indexers.domain.entities import addresses, forms
from indexers.domain.entities.evidence import NAME_MAX_CHARS
from indexers.domain.entities.patterns import CompiledPattern, compile_patterns, find_matches

__all__ = ["MAX_SPANS", "CompiledPattern", "Recognised", "RecognisedSpan", "compile_patterns", "recognise"]

#: Spans of one text; what comes behind is left out and counted, so that a log of codes stays bounded.
MAX_SPANS: Final = 20_000

_Span = tuple[int, int]


class RecognisedSpan(NamedTuple):
    """text[start:end], code points. Sorts by where it stands."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """Spans in the text's order, no two of them overlap."""

    spans: tuple[RecognisedSpan, ...]
    #: Labels of the namespace's patterns that ran out of time, once per pattern: they gave nothing for this text.
    timed_out: tuple[str, ...] = ()
    #: Spans over `MAX_SPANS`.
    left_out: int = 0


class _Rule(NamedTuple):
    """`label` '' takes a place and names nothing."""

    label: str
    pattern: re.Pattern[str]
    span: Callable[[re.Match[str]], _Span | None]


def recognise(text: str, *, patterns: Sequence[CompiledPattern] = ()) -> Recognised:
    """`text`: what is shown of a note (`masking.readings(…).shown`), or any text. Linear in its length."""
    taken = bytearray(len(text))
    found: list[RecognisedSpan] = []
    own = find_matches(text, patterns)
    for matches in own:
        _take(matches.label, (_stripped(text, span) for span in matches.spans), taken, found)
    for rule in _RULES:
        spans = (rule.span(match) for match in rule.pattern.finditer(text))
        _take(rule.label, (span for span in spans if span is not None), taken, found)
    found.sort()
    return Recognised(
        spans=tuple(islice(found, MAX_SPANS)),
        timed_out=tuple(matches.label for matches in own if matches.timed_out),
        left_out=max(len(found) - MAX_SPANS, 0),
    )


def _take(label: str, spans: Iterator[_Span], taken: bytearray, found: list[RecognisedSpan]) -> None:
    for start, end in spans:
        if start >= end or taken.find(1, start, end) >= 0:
            continue
        taken[start:end] = b"\x01" * (end - start)
        if label and end - start <= NAME_MAX_CHARS:
            found.append(RecognisedSpan(start, end, label))


def _stripped(text: str, span: _Span) -> _Span:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _code_span(match: re.Match[str]) -> _Span | None:
    return match.span() if forms.is_code(match[0]) else None


def _version_span(match: re.Match[str]) -> _Span | None:
    return match.span() if forms.is_version(match.string, *match.span()) else None


_RULES: Final = (
    _Rule("", addresses.SECRET, re.Match.span),
    _Rule("url", addresses.URL, addresses.url_span),
    _Rule("email", addresses.EMAIL, addresses.email_span),
    _Rule("path", addresses.WINDOWS, addresses.windows_span),
    _Rule("path", addresses.PATH, addresses.path_span),
    _Rule("path", addresses.FILE, addresses.file_span),
    _Rule("host", addresses.IPV4, addresses.ipv4_span),
    _Rule("host", addresses.IPV6, addresses.ipv6_span),
    _Rule("host", addresses.HOST, addresses.host_span),
    _Rule("incident", forms.INCIDENT, re.Match.span),
    _Rule("code", forms.ERROR, re.Match.span),
    _Rule("code", forms.CODE, _code_span),
    _Rule("version", forms.VERSION, _version_span),
)
