"""A part of a text, cut out while its bytes pass by: nothing else of a large file is kept.

The text is the one of `indexers.domain.text.decode_text`, and so are its warnings and the rule of what is text.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from dataclasses import dataclass

from indexers.domain.text import REPLACEMENT, WARNING_NOT_UTF8, WARNING_NUL, WARNING_REPLACED, is_mostly_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place between two code points, counted both ways: where a later reader may begin."""

    chars: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFacts:
    """What the whole file has shown. `warnings` as in `DecodedText`."""

    total_chars: int
    is_text: bool
    warnings: tuple[str, ...]
    #: From the start on, one a piece that was fed.
    marks: tuple[Mark, ...]

    def mark_before(self, chars: int) -> Mark:
        return self.marks[bisect_right(self.marks, chars, key=lambda mark: mark.chars) - 1]


START = Mark(chars=0, bytes=0)


class WindowReader:
    """Feed it the bytes from `begin` on, in pieces of any size; it keeps the code points of [start, end)."""

    def __init__(self, *, start: int, end: int, begin: Mark = START) -> None:
        self._start, self._end = start, end
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept: list[str] = []
        self._begin = begin
        self._marks = [begin]
        self._nul = False
        self._bad = 0

    @property
    def passed(self) -> bool:
        """Whether the end of the window lies behind."""
        return self._marks[-1].chars >= self._end

    @property
    def text(self) -> str:
        return "".join(self._kept)

    def feed(self, piece: bytes, *, final: bool = False) -> None:
        """An unfinished code point at the end of a piece waits for the next one, unless nothing follows."""
        waiting = self._decoder.getstate()[0]
        text = self._decoder.decode(piece, final)
        left = len(self._decoder.getstate()[0])
        # At most three bytes wait, and what waited may still wait.
        fed = waiting + piece
        decoded = fed[: len(fed) - left]
        self._nul = self._nul or b"\x00" in decoded
        self._bad += text.count(REPLACEMENT) - decoded.count(REPLACEMENT.encode())
        last = self._marks[-1]
        low, high = max(self._start - last.chars, 0), self._end - last.chars
        if high > 0:
            self._kept.append(text[low:high])
        if decoded:
            self._marks.append(Mark(chars=last.chars + len(text), bytes=last.bytes + len(decoded)))

    def facts(self) -> TextFacts:
        """Of all that was fed. Ends the text: what still waits for its rest will not get it."""
        self.feed(b"", final=True)
        last = self._marks[-1]
        is_text = not self._nul and is_mostly_text(self._bad, last.bytes - self._begin.bytes)
        reason = WARNING_NUL if self._nul else WARNING_NOT_UTF8
        return TextFacts(
            total_chars=last.chars,
            is_text=is_text,
            warnings=((WARNING_REPLACED,) if self._bad else ()) if is_text else (reason,),
            marks=tuple(self._marks),
        )
