"""What of one document may stand in a context: its blocks, cut where too large, and what speaks for each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.frontmatter import likely_body_start
from indexers.domain.prose import plain_text, shorten
from search_api.context.blocks import Block, Blocks, read_blocks
from search_api.context.cutting import BY_LINE, BY_SENTENCE, cut, lines, sentences, whole_around
from search_api.context.frames import Frame, read_frame
from search_api.context.scoring import Part, Sought, Worth, worths

#: A longer block is cut into pieces of at most so many characters.
BLOCK_CHARS: Final = 1_200
PIECE_CHARS: Final = 600
#: Blank characters that may lie between two neighbours in one excerpt.
GAP_CHARS: Final = 4
#: Units of a document that are kept for the choice, and neighbours of each on both sides.
UNITS_KEPT: Final = 32
NEIGHBOURS_KEPT: Final = 2
HEADING_CHARS: Final = 200
#: A part is shown beside the best one of its document when it has at least this share of its score.
WORTH_SHARE: Final = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """text[start:end] of a document: a whole block, or a piece of one that is too large."""

    #: Among all units of the document: neighbours follow each other.
    number: int
    start: int
    end: int
    text: str
    section: int
    #: What lies between the unit before and this one; None: the two can't stand in one excerpt.
    gap: str | None
    score: float
    #: Offset in `text` of what it is shown for.
    focus: int
    cuts_by_line: bool
    #: What makes a piece of a cut block readable: the fence around code, the head of a table.
    opening: str = ""
    closing: str = ""
    #: Offsets in `text` of what may be cut, and what stands around any piece of it.
    inner: tuple[int, int]
    frame: tuple[str, str] = ("", "")

    def narrowed(self, limit: int) -> Unit | None:
        """Whole sentences, or lines, around its focus: at most `limit` characters, but one of them at least."""
        begin, until = self.inner
        parts = (lines if self.cuts_by_line else sentences)(self.text[begin:until])
        piece = whole_around(parts, self.focus - begin, limit)
        if piece is None:
            return None
        start, end = begin + piece[0], begin + piece[1]
        return Unit(
            number=self.number,
            start=self.start + start,
            end=self.start + end,
            text=self.text[start:end],
            section=self.section,
            gap=None,
            score=self.score,
            focus=0,
            cuts_by_line=self.cuts_by_line,
            opening=self.frame[0],
            closing=self.frame[1],
            inner=(0, end - start),
            frame=self.frame,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Units worth showing with their neighbours, in the order of the text; the headings above, by section."""

    units: tuple[Unit, ...]
    headings: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft(Part):
    block: Block
    frame: Frame


def worth_showing(units: Sequence[Unit]) -> Iterator[Unit]:
    least = WORTH_SHARE * max(unit.score for unit in units)
    return (unit for unit in units if unit.score > 0 and unit.score >= least)


def outline(text: str, sought: Sought) -> Outline:
    """Of the body, frontmatter left out. Where nothing of what was sought stands in it, its beginning."""
    blocks = read_blocks(text, likely_body_start(text))
    drafts = [draft for block in blocks.blocks for draft in _drafts(text, block)]
    found = worths(text, drafts, blocks.headings, sought)
    units = tuple(_unit(text, drafts, number, found[number]) for number in _kept(found))
    return Outline(units=units, headings=_headings(text, blocks, {unit.section for unit in units}))


def _drafts(text: str, block: Block) -> Iterator[_Draft]:
    frame = read_frame(text, block)
    pieces = [(block.start, block.end)]
    if block.end - block.start > BLOCK_CHARS:
        boundaries = BY_LINE if _goes_by_line(block) else BY_SENTENCE
        pieces = list(cut(text, frame.inner_start, frame.inner_end, PIECE_CHARS, boundaries)) or pieces
        pieces[0] = (block.start, pieces[0][1])
        pieces[-1] = (pieces[-1][0], block.end)
    for start, end in pieces:
        yield _Draft(
            start=start,
            end=end,
            section=block.section,
            shown_from=max(start, frame.inner_start),
            block=block,
            frame=frame,
        )


def _goes_by_line(block: Block) -> bool:
    return block.kind in ("code", "table", "quote")


def _kept(found: Sequence[Worth]) -> list[int]:
    """Numbers of the best, with their neighbours."""
    best = sorted(range(len(found)), key=lambda number: (-found[number].score, number))[:UNITS_KEPT]
    wanted = [number for number in best if found[number].score > 0] or [0]
    kept = {
        near
        for number in wanted
        for near in range(number - NEIGHBOURS_KEPT, number + NEIGHBOURS_KEPT + 1)
        if 0 <= near < len(found)
    }
    return sorted(kept)


def _unit(text: str, drafts: Sequence[_Draft], number: int, worth: Worth) -> Unit:
    draft = drafts[number]
    frame = draft.frame
    return Unit(
        number=number,
        start=draft.start,
        end=draft.end,
        text=text[draft.start : draft.end],
        section=draft.section,
        gap=_gap(text, drafts[number - 1], draft) if number else None,
        score=worth.score,
        focus=0 if worth.place is None else min(worth.place, draft.end - 1) - draft.start,
        cuts_by_line=_goes_by_line(draft.block),
        opening=frame.opening if draft.start > draft.block.start else "",
        closing=frame.closing if draft.end < draft.block.end else "",
        inner=(draft.shown_from - draft.start, min(draft.end, frame.inner_end) - draft.start),
        frame=(frame.opening, frame.closing),
    )


def _gap(text: str, before: _Draft, draft: _Draft) -> str | None:
    gap = text[before.end : min(draft.start, before.end + GAP_CHARS + 1)]
    fits = before.section == draft.section and len(gap) <= GAP_CHARS and not gap.strip()
    return gap if fits else None


def _headings(text: str, blocks: Blocks, sections: Iterable[int]) -> dict[int, tuple[str, ...]]:
    def shown(start: int, end: int) -> str:
        line = text[start : min(end, start + 2 * HEADING_CHARS)]
        return shorten(plain_text(line.strip().strip("#")), HEADING_CHARS)

    return {
        section: tuple(name for _, start, end in blocks.path_of(section) if (name := shown(start, end)))
        for section in sections
    }
