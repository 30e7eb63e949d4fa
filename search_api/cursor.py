"""Opaque cursors: where a page ended and of which list.

They carry nothing secret and grant nothing: the list is always computed with the asker's own principal, and a
cursor of another list, or a changed one, is refused.
"""

from __future__ import annotations

import base64
import hashlib
import math
from typing import Any, TypeVar

import msgspec

#: The last second that a calendar has, more or less.
_CLOCK_MAX = 250_000_000_000


class CursorError(ValueError):
    """The text is no cursor of this list."""

    def __init__(self) -> None:
        super().__init__(
            "not a cursor of this list: give `next_cursor` of the page before, with everything else unchanged"
        )


class SearchPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The last hit of a page: hits rank by (score descending, id)."""

    score: float
    doc_id: str
    #: The first page's clock, seconds since 1970: ages and validity are the same on every page.
    at: int = 0


class ListPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The sort values of the last row of a page."""

    after: list[str]


P = TypeVar("P", SearchPosition, ListPosition)


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    fingerprint: str
    position: msgspec.Raw


def fingerprint(*parts: Any) -> str:
    """Names the list that a cursor belongs to."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:20]


def encode_cursor(position: SearchPosition | ListPosition, list_fingerprint: str) -> str:
    raw = msgspec.json.encode(
        _Envelope(fingerprint=list_fingerprint, position=msgspec.Raw(msgspec.json.encode(position)))
    )
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def decode_search_cursor(text: str, list_fingerprint: str) -> SearchPosition:
    position = _position(text, list_fingerprint, SearchPosition)
    if not (math.isfinite(position.score) and 0 <= position.at <= _CLOCK_MAX):
        raise CursorError
    return position


def decode_list_cursor(text: str, list_fingerprint: str, *, length: int) -> ListPosition:
    position = _position(text, list_fingerprint, ListPosition)
    if len(position.after) != length:
        raise CursorError
    return position


def _position(text: str, list_fingerprint: str, kind: type[P]) -> P:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        envelope = msgspec.json.decode(raw, type=_Envelope)
        if envelope.fingerprint == list_fingerprint:
            return msgspec.json.decode(envelope.position, type=kind)
    except ValueError as exc:
        # Of base64, UTF-8 and msgspec alike.
        raise CursorError from exc
    raise CursorError
