"""What the lines of documents say beside their titles, as long as nothing else says it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from search_api.context.excerpts import Shown, said_by


@dataclass(slots=True)
class Telling:
    """By the numbers of documents; `shown` and the lines that are told change while a context is made."""

    abstracts: Sequence[str]
    shown: Shown
    _told: set[int] = field(default_factory=set)
    _sentences: list[frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        self._sentences = [said_by(abstract) for abstract in self.abstracts]

    def tell(self, number: int) -> None:
        self._told.add(number)

    def leave_out(self, number: int) -> None:
        self._told.discard(number)

    def stands(self, number: int) -> bool:
        """It is told, and neither an excerpt nor a line above says any of it."""
        if number not in self._told or self.shown.beginning_said_in(self.abstracts[number]) is not None:
            return False
        said = self._sentences[number]
        above = (self._sentences[other] for other in self._told if other < number)
        return not self.shown.says_any_of(said) and all(map(said.isdisjoint, above))

    def said_in(self, number: int) -> int | None:
        """The document whose excerpt says all of a line that would be told."""
        return self.shown.beginning_said_in(self.abstracts[number]) if number in self._told else None
