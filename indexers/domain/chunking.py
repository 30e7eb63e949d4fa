"""A note's body → chunks that fit the embedder, cut along headings, blocks, lines, sentences, words.

A heading starts its chunk; a heading with nothing below it but deeper headings goes with the first of them.
Small blocks of one section are packed. The limit holds for what is embedded: heading path and text together.
Nothing but whitespace lies between chunks. Neither path nor name of the file plays a part: a rename embeds
nothing again.

Tokens are counted in few large batches: cuts are guessed from characters per token and then checked.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from indexers.domain.hashing import text_hash
from indexers.domain.markdown import Heading, ParsedNote
from indexers.ports import TokenCounter

#: Another version means: chunk and embed every note again (hash gate).
CHUNKER_VERSION = "headings-1"

#: Share of the limit that the heading path may take; outer headings are left out first.
_PATH_SHARE = 4
#: Texts of one counting call, and characters of one counted text: memory stays bounded.
_BATCH_TEXTS = 512
_COUNTED_CHARACTERS = 4_096
#: A guessed cut aims below the limit, so that few guesses have to be repeated.
_AIM = 0.92
_BLANK = " \t\r\n\f\v\ufeff\u00a0\u2028\u2029\u3000"
_BOUNDARIES = (re.compile(r"[\r\n]+"), re.compile(r"[.!?…](?=\s)\s*|[。！？]\s*"), re.compile(r"\s+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """text[start:end] of the note. `heading_path`: headings above it, outermost first, its own included."""

    ordinal: int
    start: int
    end: int
    heading_path: tuple[str, ...]


def chunk(note: ParsedNote, *, counter: TokenCounter, max_tokens: int) -> list[Chunk]:
    """Deterministic; every chunk's `embedding_text` has at most `max_tokens` tokens by `counter`."""
    cutter = _Cutter(note.text, counter, max_tokens)
    spans: list[_Span] = []
    for section in _sections(note):
        path = cutter.fitting_path(section.path)
        spans.extend(cutter.packed([_Span(start, end, path) for start, end in _blocks(note, section)]))
    return [
        Chunk(ordinal=ordinal, start=span.start, end=span.end, heading_path=span.path)
        for ordinal, span in enumerate(cutter.checked(spans))
    ]


def embedding_text(heading_path: Sequence[str], text: str) -> str:
    """What is embedded (NFC): the headings above a text, then the text; its own heading isn't said twice."""
    own = text.lstrip(_BLANK).partition("\n")[0].strip(" \t\r#")
    above = heading_path[:-1] if heading_path and heading_path[-1] == own else heading_path
    prefix = f"{' > '.join(above)}\n" if above else ""
    return unicodedata.normalize("NFC", prefix + text)


def chunk_hash(embedding_text: str) -> str:
    """Vectors are reused by (tenant, this hash, model id)."""
    return text_hash(embedding_text)


def chunker_version(counter: TokenCounter, max_tokens: int) -> str:
    """All that decides where chunks end."""
    return f"{CHUNKER_VERSION}/{counter.tokenizer_id}/{max_tokens}"


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    #: Where the text below the heading begins.
    content: int
    end: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    path: tuple[str, ...]


def _sections(note: ParsedNote) -> Iterator[_Section]:
    text, headings = note.text, note.headings
    bounds = [*(heading.start for heading in headings), len(text)]
    top = (note.frontmatter.title,) if note.frontmatter.title else ()
    if bounds[0] > note.body_start:
        yield _Section(note.body_start, note.body_start, bounds[0], top)
    stack: list[Heading] = []
    held: int | None = None
    for index, heading in enumerate(headings):
        while stack and stack[-1].level >= heading.level:
            stack.pop()
        stack.append(heading)
        start, end = heading.start if held is None else held, bounds[index + 1]
        following = headings[index + 1] if index + 1 < len(headings) else None
        if (
            following is not None
            and following.level > heading.level
            and not text[heading.end : end].strip(_BLANK)
        ):
            held = start
            continue
        held = None
        path = tuple(above.text for above in stack if above.text)
        yield _Section(start, heading.end, end, path if path[:1] == top else (*top, *path))


def _blocks(note: ParsedNote, section: _Section) -> Iterator[tuple[int, int]]:
    """Spans of the section's blocks; the heading belongs to the first block below it."""
    text, starts = note.text, note.block_starts
    content = section.content
    while content < section.end and text[content] in _BLANK:
        content += 1
    first = bisect_left(starts, content + 1)
    cuts = [section.start, *starts[first : bisect_left(starts, section.end)], section.end]
    for start, end in pairwise(cuts):
        if trimmed := _trim(text, start, end):
            yield trimmed


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and (text[start] in _BLANK or text[start].isspace()):
        start += 1
    while start < end and (text[end - 1] in _BLANK or text[end - 1].isspace()):
        end -= 1
    return (start, end) if start < end else None


class _Cutter:
    def __init__(self, text: str, counter: TokenCounter, max_tokens: int) -> None:
        self.text = text
        self.counter = counter
        self.max_tokens = max_tokens

    def fitting_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The innermost headings that leave most of the limit to the text."""
        while path and self._count([f"{' > '.join(path)}\n"])[0] > self.max_tokens // _PATH_SHARE:
            path = path[1:]
        return path

    def packed(self, blocks: list[_Span]) -> Iterator[_Span]:
        """Neighbours joined as far as their counts say that they fit; large blocks cut first."""
        if not blocks:
            return
        room = self.max_tokens - self._count([embedding_text(blocks[0].path, "")])[0]
        pieces = [piece for block in blocks for piece in self._cut_large(block, room)]
        sizes = self._count([self.text[piece.start : piece.end] for piece in pieces])
        current, used = pieces[0], sizes[0]
        for piece, size in zip(pieces[1:], sizes[1:], strict=True):
            if used + size <= room:
                current, used = _Span(current.start, piece.end, current.path), used + size
            else:
                yield current
                current, used = piece, size
        yield current

    def checked(self, spans: list[_Span]) -> Iterator[_Span]:
        """The spans, those over the limit cut again until they fit. A single character always passes."""
        counts = self._count([embedding_text(span.path, self.text[span.start : span.end]) for span in spans])
        for span, count in zip(spans, counts, strict=True):
            if count <= self.max_tokens or span.end - span.start == 1:
                yield span
            else:
                limit = int((span.end - span.start) * min(self.max_tokens / count * _AIM, 0.75))
                yield from self.checked(list(self._cut(span, max(limit, 1))))

    def _cut_large(self, block: _Span, room: int) -> Iterator[_Span]:
        length = block.end - block.start
        if length <= room:  # a token has at least one character
            yield block
            return
        windows = [
            self.text[at : min(at + _COUNTED_CHARACTERS, block.end)]
            for at in range(block.start, block.end, _COUNTED_CHARACTERS)
        ]
        tokens = max(sum(self._count(windows)), 1)
        yield from [block] if tokens <= room else self._cut(block, max(int(length / tokens * room * _AIM), 1))

    def _cut(self, span: _Span, limit: int) -> Iterator[_Span]:
        """Pieces of at most `limit` characters, of similar length, cut at the best boundary near the end."""
        start = span.start
        while start < span.end:
            left = span.end - start
            aim = math.ceil(left / math.ceil(left / limit))
            end = span.end if left <= limit else self._boundary(start, start + aim, start + limit)
            if trimmed := _trim(self.text, start, end):
                yield _Span(*trimmed, span.path)
            start = end

    def _boundary(self, start: int, aim: int, limit: int) -> int:
        """The last line end, else sentence end, else word end, in the last part before `limit`."""
        least = start + max((aim - start) // 2, 1)
        for pattern in _BOUNDARIES:
            ends = [match.end() for match in pattern.finditer(self.text, least, limit)]
            if ends:
                return ends[-1]
        return limit

    def _count(self, texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for at in range(0, len(texts), _BATCH_TEXTS):
            counts.extend(self.counter.count_tokens(texts[at : at + _BATCH_TEXTS]))
        return counts
