"""Ranked documents and their units → a context within a budget of tokens. Pure, but for the counter it is given.

The budget goes first to title and path (L0) of the documents in the order of the ranking, as many as its share has room
for; then, in rounds: the best part of each of them whose text was read; titles and paths of the others; what the one
line of each says; what else was found, best first; the neighbours of what is shown. What is shown is counted as a whole
at the end: it never exceeds the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from search_api.context.accounts import Accounts, Count, Source
from search_api.context.excerpts import Excerpt, Place, Repeat, Shown, compared, said_by
from search_api.context.rendering import head, section, whole
from search_api.context.telling import Telling
from search_api.context.units import Unit, worth_showing

#: Of the budget, for titles and paths before any excerpt.
NAMES_SHARE: Final = 0.5
_TRIES: Final = 3
_AIM: Final = 0.9
_BATCH: Final = 16


class BudgetTooSmallError(Exception):
    """Not even the first document's line fits; it has so many tokens."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """`source` as it stands in the context."""

    source: Source
    excerpts: tuple[Excerpt, ...]
    repeats: tuple[Repeat, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """`tokens` of `text`, counted over the whole; documents beyond `taken` found no room."""

    text: str
    tokens: int
    taken: tuple[Taken, ...]


def assemble(sources: Sequence[Source], *, count: Count, budget: int, document_tokens: int) -> Assembled:
    """`document_tokens`: most that the excerpts of one document may take. Raises BudgetTooSmallError."""
    shown = Shown()
    telling = Telling([source.line.abstract for source in sources], shown)
    work = _Work(sources, budget, document_tokens, count, shown, Accounts(sources, count, shown), telling)
    work.take_names(most=int(NAMES_SHARE * budget))
    work.take_best()
    work.take_names(most=budget)
    work.take_abstracts()
    work.take_others()
    work.take_neighbours()
    return work.fitted()


class _Named(NamedTuple):
    number: int


class _Told(NamedTuple):
    number: int


@dataclass(slots=True)
class _Work:
    sources: Sequence[Source]
    budget: int
    document_tokens: int
    count: Count
    shown: Shown
    accounts: Accounts
    telling: Telling
    #: How many of the documents are taken.
    documents: int = 0
    #: In the order in which they were taken: the last go first when the whole is too long.
    order: list[Place | _Named | _Told] = field(default_factory=list)
    #: By document and number: units that others say.
    unsaid: dict[int, dict[int, Unit]] = field(default_factory=dict)

    def take_names(self, *, most: int) -> None:
        """Title and path of as many more as fit into `most` tokens; of the first document in any case."""
        self.accounts.learn(head(source.line, with_abstract=False) for source in self.sources)
        for number in range(self.documents, len(self.sources)):
            self._settle(number)
            if self.accounts.used > (most if number else self.budget):
                self.accounts.forget(number)
                break
            self.documents += 1
            if number:
                self.order.append(_Named(number))
        if self.sources and not self.documents:
            raise BudgetTooSmallError(self.accounts.tokens(head(self.sources[0].line, with_abstract=False)))

    def take_abstracts(self) -> None:
        """What lines say, of those for which there is room."""
        self.accounts.learn(head(source.line) for source in self.sources[: self.documents])
        for number in range(self.documents):
            self.telling.tell(number)
            self._settle(number)
            if self.accounts.used > self.budget:
                self.telling.leave_out(number)
                self._settle(number)
            else:
                self.order.append(_Told(number))

    def take_best(self) -> None:
        """The best part of each document, or as much of it as fits."""
        best = [(n, min(units, key=lambda unit: (-unit.score, unit.number))) for n, units in self._units()]
        self.accounts.learn(unit.text for _, unit in best)
        for number, unit in best:
            self._take(number, unit, narrows=True)

    def take_others(self) -> None:
        """What else was found, by the scores of document and part."""
        rest = [
            (-self.sources[number].score * unit.score, number, unit.number, unit)
            for number, units in self._units()
            for unit in worth_showing(units)
        ]
        rest.sort(key=lambda one: one[:3])
        for start in range(0, len(rest), _BATCH):
            batch = rest[start : start + _BATCH]
            self.accounts.learn(unit.text for *_, unit in batch)
            for _, number, _, unit in batch:
                self._take(number, unit)

    def take_neighbours(self) -> None:
        """What follows an excerpt, then what goes before it, in its section: a step each."""
        for number, units in self._units():
            by_number = {unit.number: unit for unit in units}
            for excerpt in self.shown.of(number):
                for near in (excerpt.units[-1].number + 1, excerpt.units[0].number - 1):
                    unit = by_number.get(near)
                    if unit is not None and unit.section == excerpt.section:
                        self._take(number, unit)

    def fitted(self) -> Assembled:
        text, tokens = self._exact()
        while tokens > self.budget and self.order:
            self._undo(self.order.pop())
            text, tokens = self._exact()
        return Assembled(text=text, tokens=tokens, taken=tuple(map(self._taken, range(self.documents))))

    def _undo(self, taken: Place | _Named | _Told) -> None:
        match taken:
            case _Named(number):
                self.documents = number
            case _Told(number):
                self.telling.leave_out(number)
            case Place() if self.shown.has(*taken):
                self.shown.remove(taken)

    def _units(self) -> Iterator[tuple[int, tuple[Unit, ...]]]:
        for number, source in enumerate(self.sources[: self.documents]):
            if source.outline is not None and source.outline.units:
                yield number, source.outline.units

    def _take(self, number: int, unit: Unit, *, narrows: bool = False) -> None:
        if self.shown.has(number, unit.number):
            return
        if self.shown.said_in(unit) is not None:
            self._leave_out(number, unit)
            self._settle(number)
            return
        room = min(
            self.budget - self.accounts.used, self.document_tokens - self.accounts.used_by_excerpts(number)
        )
        fitting = unit if self.accounts.cost(number, unit) <= room else None
        if fitting is None and narrows:
            fitting = self._narrowed(number, unit, room)
        if fitting is None:
            return
        for place in self.shown.swallowed(number, fitting):
            self._leave_out(place.document, self.shown.remove(place))
            self._settle(place.document)
        self.shown.add(number, fitting)
        self._settle(number)
        self.order.append(Place(number, fitting.number))

    def _narrowed(self, number: int, unit: Unit, room: int) -> Unit | None:
        """A whole piece around what the unit is shown for; its length is guessed from the unit's tokens."""
        cost, limit = self.accounts.cost(number, unit), len(unit.text)
        for left in range(_TRIES, -1, -1):
            limit = int(limit * _AIM * room / max(cost, 1)) if left and room > 0 else 0
            piece = unit.narrowed(limit)
            if piece is None:
                return None
            cost, limit = self.accounts.cost(number, piece), len(piece.text)
            said = {compared(piece.text), *said_by(piece.text)}
            if cost <= room and not self.shown.says_any_of(said):
                return piece
        return None

    def _leave_out(self, number: int, unit: Unit) -> None:
        self.unsaid.setdefault(number, {})[unit.number] = unit

    def _settle(self, number: int) -> None:
        stands, said_under = self.telling.stands(number), self._said_under(number)
        self.accounts.settle(number, with_abstract=stands, said_under=said_under)

    def _repeats(self, number: int) -> list[Repeat]:
        """Only what is shown now counts as said."""
        unsaid = sorted(self.unsaid.get(number, {}).values(), key=lambda unit: unit.start)
        said = [
            (unit, self.shown.said_in(unit)) for unit in unsaid if not self.shown.has(number, unit.number)
        ]
        return [Repeat(unit.start, unit.end, where) for unit, where in said if where is not None]

    def _said_under(self, number: int) -> set[int]:
        """Numbers, as shown, of the documents that say what this one says too."""
        places = {repeat.shown_in for repeat in self._repeats(number)}
        beginning = self.telling.said_in(number)
        places |= set() if beginning is None else {beginning}
        return {self.sources[place].line.number for place in places - {number}}

    def _exact(self) -> tuple[str, int]:
        text = whole([self._section(number) for number in range(self.documents)])
        return text, self.count([text])[0] if text else 0

    def _section(self, number: int) -> str:
        source = self.sources[number]
        headings = source.outline.headings if source.outline is not None else {}
        return section(
            source.line,
            self.shown.of(number),
            headings,
            with_abstract=self.telling.stands(number),
            said_under=self._said_under(number),
        )

    def _taken(self, number: int) -> Taken:
        return Taken(
            source=self.sources[number],
            excerpts=tuple(self.shown.of(number)),
            repeats=tuple(self._repeats(number)),
        )
