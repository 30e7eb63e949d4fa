"""Text as it is compared: NFC, case-folded, with the way back to the text's own positions."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

#: A character with what composes with it: combining marks, Hangul vowels and finals.
_CLUSTER = re.compile(
    r".[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u064b-\u065f\u1160-\u11ff\u1ab0-\u1aff\u20d0-\u20ff"
    r"\u3099\u309a\ufe20-\ufe2f]*",
    re.DOTALL,
)


def fold_text(text: str) -> tuple[str, Callable[[int], int]]:
    """The folded text, and from its positions back to those of the text."""
    folded = nfc_fold(text)
    if len(folded) == len(text) and unicodedata.is_normalized("NFC", text):
        return folded, lambda position: position
    parts: list[str] = []
    starts, sources, at = [0], [0], 0
    for cluster in _CLUSTER.finditer(text):
        part = nfc_fold(cluster[0])
        parts.append(part)
        at += len(part)
        if len(part) != len(cluster[0]):
            starts.append(at)
            sources.append(cluster.end())

    def origin(position: int) -> int:
        piece = bisect_right(starts, position) - 1
        limit = sources[piece + 1] if piece + 1 < len(sources) else len(text)
        return min(sources[piece] + position - starts[piece], limit)

    return "".join(parts), origin


def nfc_fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
