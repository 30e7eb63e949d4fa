"""The assembled context as Markdown: every document with its title and path, then what is shown of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from search_api.context.excerpts import Excerpt

#: Between two excerpts of one document that lie apart.
APART: Final = "…"
_BETWEEN: Final = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """L0 of a document: what it is, in one line."""

    number: int
    title: str
    path: str
    abstract: str


def head(line: Line, *, with_abstract: bool = True) -> str:
    name = f"## {line.number}. {_one_line(line.title)} ({_one_line(line.path)})"
    abstract = _one_line(line.abstract)
    return f"{name}{_BETWEEN}{abstract}" if with_abstract and abstract else name


def note(numbers: Iterable[int]) -> str:
    """Of the documents, as numbered, whose excerpts say what is left out here."""
    named = ", ".join(map(str, sorted(set(numbers))))
    return f"(Also says what is shown under {named}.)" if named else ""


def section(
    line: Line,
    excerpts: Sequence[Excerpt],
    headings: Mapping[int, tuple[str, ...]],
    *,
    with_abstract: bool,
    said_under: Iterable[int],
) -> str:
    parts = [head(line, with_abstract=with_abstract), *_shown(line, excerpts, headings), note(said_under)]
    return _BETWEEN.join(part for part in parts if part)


def whole(sections: Sequence[str]) -> str:
    return _BETWEEN.join(sections)


def heading_line(path: Sequence[str], title: str) -> str:
    """The headings above an excerpt; the title isn't said twice."""
    shown = path[1:] if path and path[0] == title else path
    return f"{' > '.join(shown)}:" if shown else ""


def _shown(line: Line, excerpts: Sequence[Excerpt], headings: Mapping[int, tuple[str, ...]]) -> Iterator[str]:
    last = ""
    for number, excerpt in enumerate(excerpts):
        above = heading_line(headings.get(excerpt.section, ()), line.title)
        if above and above != last:
            yield above
        elif number:
            yield APART
        last = above
        first, final = excerpt.units[0], excerpt.units[-1]
        yield "\n".join(part for part in (first.opening, excerpt.text, final.closing) if part)


def _one_line(text: str) -> str:
    return " ".join(text.split())
