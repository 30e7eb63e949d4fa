"""Bytes of a file → text. Every offset of Hopline counts code points of the text returned here.

The text is the file's code points as they stand: a byte order mark stays as U+FEFF, line ends and
normalisation stay. A file that isn't text is known by its path and title and gets no vector: a NUL byte, or
more than one undecodable sequence in ten bytes. Fewer become U+FFFD, with a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Undecodable sequences per byte up to which a file is text: covers Latin-1 prose, not CP949 or binaries.
MAX_BAD_SHARE = 0.1

#: Bytes to read beyond a cap, so that the cut can be placed between two code points.
CUT_MARGIN_BYTES = 16

WARNING_NUL = "nul_bytes"
WARNING_NOT_UTF8 = "not_utf8"
WARNING_REPLACED = "invalid_utf8_replaced"
WARNING_TRUNCATED = "truncated"

REPLACEMENT = "\ufffd"

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedText:
    """`text` is empty where `is_text` is False; the reason is then in `warnings`."""

    text: str
    left_out_bytes: int
    warnings: tuple[str, ...]
    is_text: bool


def decode_text(raw: bytes, *, max_bytes: int) -> DecodedText:
    """Decode at most `max_bytes`, cut on a code-point boundary. Only the part kept is judged."""
    kept = raw[: _boundary(raw, max_bytes)]
    left_out = len(raw) - len(kept)
    warnings = (WARNING_TRUNCATED,) if left_out else ()
    if b"\x00" in kept:
        return DecodedText(text="", left_out_bytes=left_out, warnings=(*warnings, WARNING_NUL), is_text=False)
    text = kept.decode("utf-8", "replace")
    bad = text.count(REPLACEMENT) - kept.count(REPLACEMENT.encode())
    if not is_mostly_text(bad, len(kept)):
        return DecodedText(
            text="", left_out_bytes=left_out, warnings=(*warnings, WARNING_NOT_UTF8), is_text=False
        )
    if bad:
        warnings = (*warnings, WARNING_REPLACED)
    return DecodedText(text=text, left_out_bytes=left_out, warnings=warnings, is_text=True)


def storable(text: str) -> str:
    """What an escape can say and no file holds: pairs of surrogates are joined; lone ones and NUL are U+FFFD."""
    if _NOT_STORABLE.search(text) is None:
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", REPLACEMENT)


def is_mostly_text(bad: int, size: int) -> bool:
    """Of so many bytes, with so many undecodable sequences."""
    return bad <= size * MAX_BAD_SHARE


def _boundary(raw: bytes, max_bytes: int) -> int:
    """Largest cut ≤ max_bytes that splits no code point; a run of continuation bytes is cut anywhere."""
    if len(raw) <= max_bytes:
        return len(raw)
    for cut in range(max_bytes, max(max_bytes - 4, -1), -1):
        if raw[cut] & 0xC0 != 0x80:
            return cut
    return max_bytes
