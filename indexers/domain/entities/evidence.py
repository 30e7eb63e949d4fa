"""The evidence gate: nothing is stored unless its text stands at its offsets in the source. Pure.

For mentions, aliases and relations' names alike: `objection` says why one is refused, the caller counts by reason.
For relations `find_quote` says where the quote stands.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal, get_args

from indexers.domain.entities.sentences import block_around, is_grapheme_start
from indexers.domain.folding import fold_text, nfc_fold

Reason = Literal[
    "out_of_bounds",
    "text_differs",
    "empty_name",
    "too_long",
    "not_readable",
    "markup_inside",
    "crosses_blocks",
]
#: In the order in which they are looked for; a claim is refused for the first that holds.
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
#: Code points of a name; a name that reads so long is a sentence.
NAME_MAX_CHARS: Final = 300
#: Code points of a quote.
QUOTE_MAX_CHARS: Final = 1_000


def objection(
    text: str, surface: str, start: int, end: int, *, reading: str | None = None, body_start: int = 0
) -> Reason | None:
    """Why `surface` at text[start:end] is no evidence for a name; None where it is.

    * `out_of_bounds`: not 0 <= start <= end <= len(text)
    * `text_differs`: text[start:end] is not the surface, code point by code point
    * `empty_name`: no letter and no digit in it
    * `too_long`: more than `NAME_MAX_CHARS`
    * `not_readable`: all of it is masked in `reading` (of `masking`): frontmatter, a comment, a link's target
    * `markup_inside`: a part of it is masked, so that the names on both sides only look like one
    * `crosses_blocks`: it runs from one block (paragraph, list item, table row, heading) into another

    `reading`: the text as its finder read it; None looks at neither masks nor blocks. `body_start`: as there.
    """
    if not 0 <= start <= end <= len(text):
        return "out_of_bounds"
    if text[start:end] != surface:
        return "text_differs"
    if not any(map(str.isalnum, surface)):
        return "empty_name"
    if end - start > NAME_MAX_CHARS:
        return "too_long"
    return None if reading is None else _against_reading(text, reading, (start, end), body_start)


def tidy_span(text: str, reading: str, start: int, end: int) -> tuple[int, int]:
    """The span without the blanks and masked marks at its edges: `[[Alice]]` → `Alice`. Empty where nothing is left."""
    while start < end and (reading[start].isspace() or reading[start] != text[start]):
        start += 1
    while start < end and (reading[end - 1].isspace() or reading[end - 1] != text[end - 1]):
        end -= 1
    return start, end


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Where a quote stands first: text[start:end], a run of white space as good as one blank, NFC or not.

    Capitals, punctuation and markup count. None for a blank quote, and for one over `QUOTE_MAX_CHARS`.
    """
    wanted = _one_line(quote)
    if not wanted or len(quote) > QUOTE_MAX_CHARS:
        return None
    at = text.find(wanted)
    if at >= 0 and not _cuts_cluster(text, at, at + len(wanted)):
        return at, at + len(wanted)
    folded, origin = fold_text(text)
    # Looks ahead, so that a place that fails hides no other that overlaps it.
    words = r"\s+".join(map(re.escape, nfc_fold(wanted).split()))
    for match in re.finditer(rf"(?=({words}))", folded):
        start, end = origin(match.start(1)), origin(match.end(1))
        if _one_line(text[start:end]) == wanted and not _cuts_cluster(text, start, end):
            return start, end
    return None


def _against_reading(text: str, reading: str, span: tuple[int, int], body_start: int) -> Reason | None:
    start, end = span
    read = reading[start:end]
    if read != text[start:end]:
        return "markup_inside" if any(map(str.isalnum, read)) else "not_readable"
    # Within one line there is nothing to cross.
    if ("\n" in read or "\r" in read) and block_around(text, start, end, body_start=body_start)[1] < end:
        return "crosses_blocks"
    return None


def _one_line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _cuts_cluster(text: str, start: int, end: int) -> bool:
    return not (is_grapheme_start(text, start) and is_grapheme_start(text, end))
