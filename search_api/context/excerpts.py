"""Excerpts of documents as they are chosen: neighbours join, and none says what another says already. Pure.

Texts are compared folded, without markup, with white space as one blank, by whole words: a paragraph that was wrapped
otherwise or copied into another note is the same paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from indexers.domain.folding import nfc_fold
from search_api.context.cutting import sentences
from search_api.context.units import Unit

#: Shorter texts (`yes`, `- done`) may stand within a longer one without being a repetition of it.
LEAST_CHARS: Final = 24
_WIKILINK: Final = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_MARKS: Final = str.maketrans("", "", "*_`~")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Neighbouring units of one document."""

    units: tuple[Unit, ...]
    text: str
    #: As it is compared.
    compared: str

    @property
    def start(self) -> int:
        return self.units[0].start

    @property
    def end(self) -> int:
        return self.units[-1].end

    @property
    def section(self) -> int:
        return self.units[0].section


class Repeat(NamedTuple):
    """text[start:end] of a document is left out: it stands in an excerpt of document number `shown_in`."""

    start: int
    end: int
    shown_in: int


class Place(NamedTuple):
    """A unit that stands in the context, by the numbers of its document and its own."""

    document: int
    unit: int


def compared(text: str) -> str:
    """As a reader sees it, marks and targets of links left out; blanks at both ends, so that whole words are found."""
    seen = _LINK.sub(r"\1", _WIKILINK.sub(r"\1", text)).translate(_MARKS)
    return f" {' '.join(nfc_fold(seen).split())} "


def said_by(text: str) -> frozenset[str]:
    """Its sentences as they are compared, but for short ones, which may stand anywhere."""
    whole = (compared(text[start:end].rstrip("…")).rstrip() for start, end in sentences(text))
    return frozenset(sentence for sentence in whole if len(sentence) > LEAST_CHARS)


def joined(units: Sequence[Unit]) -> Iterator[Excerpt]:
    """Units in the order of the text → excerpts: what follows without a gap of its own is one."""
    run: list[Unit] = []
    for before, unit in pairwise((None, *units)):
        if unit is None:
            continue
        if before is not None and not _follows(before, unit):
            yield _excerpt(run)
            run = []
        run.append(unit)
    if run:
        yield _excerpt(run)


def _follows(before: Unit, unit: Unit) -> bool:
    return (
        unit.gap is not None and before.section == unit.section and before.end + len(unit.gap) == unit.start
    )


def _excerpt(run: Sequence[Unit]) -> Excerpt:
    text = "".join((unit.gap or "") * bool(number) + unit.text for number, unit in enumerate(run))
    return Excerpt(units=tuple(run), text=text, compared=compared(text))


@dataclass(slots=True)
class Shown:
    """All excerpts of a context so far, by the number of their document."""

    _units: dict[int, dict[int, Unit]] = field(default_factory=dict)
    _excerpts: dict[int, list[Excerpt]] = field(default_factory=dict)
    _compared: dict[Place, str] = field(default_factory=dict)

    def of(self, document: int) -> list[Excerpt]:
        return self._excerpts.get(document, [])

    def has(self, document: int, number: int) -> bool:
        return number in self._units.get(document, {})

    def said_in(self, unit: Unit) -> int | None:
        """The document in whose excerpts the unit's text stands already."""
        return self._saying(compared(unit.text))

    def beginning_said_in(self, line: str) -> int | None:
        """The document in whose excerpts a line stands, however it was shortened."""
        begin = compared(line.rstrip("…")).rstrip()
        return self._saying(begin) if begin else None

    def says_any_of(self, said: Iterable[str]) -> bool:
        return any(self._saying(sentence) is not None for sentence in said)

    def _saying(self, text: str) -> int | None:
        for document, excerpts in self._excerpts.items():
            if any(text in excerpt.compared for excerpt in excerpts):
                return document
        return None

    def swallowed(self, document: int, unit: Unit) -> list[Place]:
        """What would stand twice if the unit joined: excerpts, or parts of them, that its excerpt would hold."""
        grown = next(e for e in joined(self._with(document, unit)) if unit in e.units)
        own = {Place(document, held.number) for held in grown.units}
        found = [
            place
            for place, text in self._compared.items()
            if place not in own and len(text) > LEAST_CHARS and text in grown.compared
        ]
        for other, excerpts in self._excerpts.items():
            for excerpt in excerpts:
                places = [Place(other, held.number) for held in excerpt.units]
                if len(excerpt.compared) > LEAST_CHARS and own.isdisjoint(places):
                    found += places if excerpt.compared in grown.compared else []
        return sorted(set(found))

    def add(self, document: int, unit: Unit) -> None:
        self._units.setdefault(document, {})[unit.number] = unit
        self._compared[Place(document, unit.number)] = compared(unit.text)
        self._join(document)

    def remove(self, place: Place) -> Unit:
        unit = self._units[place.document].pop(place.unit)
        del self._compared[place]
        self._join(place.document)
        return unit

    def _with(self, document: int, unit: Unit) -> list[Unit]:
        held = {**self._units.get(document, {}), unit.number: unit}
        return [held[number] for number in sorted(held)]

    def _join(self, document: int) -> None:
        held = self._units[document]
        self._excerpts[document] = list(joined([held[number] for number in sorted(held)]))
