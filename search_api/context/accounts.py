"""What a context costs while it is made: tokens by document, each text counted once. Pure, but for the counter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from search_api.context.excerpts import Shown
from search_api.context.rendering import APART, Line, head, heading_line, note
from search_api.context.units import Outline, Unit

Count = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document in the order of the ranking; `outline` None: only its line can be shown."""

    line: Line
    score: float
    outline: Outline | None = None


@dataclass(slots=True)
class Accounts:
    """Sums of parts: near the truth, which only the whole text tells (a tokenizer may join what stands together)."""

    sources: Sequence[Source]
    count: Count
    shown: Shown
    _known: dict[str, int] = field(default_factory=dict)
    _heads: dict[int, int] = field(default_factory=dict)
    _excerpts: dict[int, int] = field(default_factory=dict)

    def learn(self, texts: Iterable[str]) -> None:
        """Count them in one call."""
        new = [text for text in dict.fromkeys(texts) if text and text not in self._known]
        if new:
            self._known.update(zip(new, self.count(new), strict=True))

    def tokens(self, text: str) -> int:
        if not text:
            return 0
        self.learn([text])
        return self._known[text]

    @property
    def used(self) -> int:
        return sum(self._heads.values()) + sum(self._excerpts.values())

    def used_by_excerpts(self, document: int) -> int:
        return self._excerpts.get(document, 0)

    def cost(self, document: int, unit: Unit) -> int:
        """What the unit would add to its document."""
        is_new = all(excerpt.section != unit.section for excerpt in self.shown.of(document))
        own = self.tokens(unit.text) + self.tokens(unit.opening) + self.tokens(unit.closing)
        return own + (self._heading(document, unit.section) if is_new else self.tokens(APART))

    def settle(self, document: int, *, with_abstract: bool, said_under: Iterable[int] = ()) -> None:
        """Count a document anew: its line, with what it says or without, its excerpts, where the rest is said."""
        line, excerpts = self.sources[document].line, self.shown.of(document)
        self._heads[document] = self.tokens(head(line, with_abstract=with_abstract)) + self.tokens(
            note(said_under)
        )
        total, last = 0, None
        for excerpt in excerpts:
            is_new = excerpt.section != last
            total += self._heading(document, excerpt.section) if is_new else self.tokens(APART)
            total += sum(self.tokens(unit.text) for unit in excerpt.units)
            total += self.tokens(excerpt.units[0].opening) + self.tokens(excerpt.units[-1].closing)
            last = excerpt.section
        self._excerpts[document] = total

    def forget(self, document: int) -> None:
        self._heads.pop(document, None)
        self._excerpts.pop(document, None)

    def _heading(self, document: int, section: int) -> int:
        source = self.sources[document]
        path = source.outline.headings.get(section, ()) if source.outline is not None else ()
        return self.tokens(heading_line(path, source.line.title) or APART)
