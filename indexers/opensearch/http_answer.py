"""Bytes of a connection → one HTTP/1.1 answer (RFC 9112). Pure: fed as they come, in whatever pieces.

Nothing that is held is without bound, and what can't become an answer any more is refused at once: a reader that
goes on waiting for more would hold its request until the time for it is over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Far above any answer to what this project asks (bodies of notes aren't stored), and what a process can still hold.
ANSWER_MAX_BYTES: Final = 268_435_456
_HEAD_MAX_BYTES: Final = 65_536
_HEAD_MAX_LINES: Final = 256
#: Of the line before a chunk: its size, and extensions that nobody uses.
_CHUNK_LINE_MAX_BYTES: Final = 4_096
#: Interim answers before the one that counts.
_INTERIM_MAX: Final = 16
_SWITCHED: Final = 101
_BODYLESS: Final = frozenset({204, 304})
_BEGINNING: Final = b"HTTP/1."
_NO_ANSWER: Final = "the answer is no HTTP/1.1"
#: Some take a lone one for the end of a line, and see other headers then.
_LONE_ENDS: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n|\0")


class AnswerTooLarge(ValueError):  # noqa: N818 - a kind of answer
    """Nothing is wrong with the answer but that it can't be held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """Header names are small; of one given twice, the values are joined by a comma."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AnswerReader:
    """One answer. `feed` raises ValueError for what is no HTTP/1.1, AnswerTooLarge for a body above `max_bytes`."""

    def __init__(self, *, has_body: bool = True, max_bytes: int = ANSWER_MAX_BYTES) -> None:
        self._has_body = has_body
        self._max_bytes = max_bytes
        #: Whether anything came.
        self.has_begun = False
        self._buffer = bytearray()
        self._status = 0
        self._interim = 0
        self._headers: dict[str, str] = {}
        #: Bytes of the body, where the head says how many.
        self._length: int | None = None
        self._chunks: bytearray | None = None
        self._keeps = False
        self._is_done = False

    @property
    def may_go_on(self) -> bool:
        """The answer is whole, nothing follows it, and the connection stays open."""
        return self._is_done and self._keeps and not self._buffer

    def feed(self, data: bytes) -> HttpAnswer | None:
        """The answer once it is whole."""
        self.has_begun = self.has_begun or bool(data)
        self._buffer += data
        while not self._status:
            if not self._read_head():
                return None
        if self._chunks is not None:
            return self._answer(bytes(self._chunks)) if self._read_chunks(self._chunks) else None
        if self._length is not None and len(self._buffer) >= self._length:
            with memoryview(self._buffer) as whole:
                body = bytes(whole[: self._length])
            del self._buffer[: self._length]
            return self._answer(body)
        if self._length is None:
            self._require_room(len(self._buffer))
        return None

    def end(self) -> HttpAnswer | None:
        """At the end of the connection: whole only where the end is what ends the body."""
        if not self._status or self._chunks is not None or self._length is not None:
            return None
        return self._answer(bytes(self._buffer))

    def _answer(self, body: bytes) -> HttpAnswer:
        self._is_done = True
        return HttpAnswer(status=self._status, headers=self._headers, body=body)

    def _read_head(self) -> bool:
        """False until it is whole. An interim answer (1xx) is passed over."""
        if not self._buffer.startswith(_BEGINNING[: len(self._buffer)]):
            raise ValueError(_NO_ANSWER)
        end = self._buffer.find(b"\r\n\r\n")
        if max(end, len(self._buffer) if end < 0 else 0) > _HEAD_MAX_BYTES:
            msg = "the head of the answer has no end"
            raise ValueError(msg)
        if end < 0:
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        if head.count(b"\r\n") > _HEAD_MAX_LINES or _LONE_ENDS.search(head):
            msg = "the head of the answer has too many lines, or other ends of lines than HTTP's"
            raise ValueError(msg)
        first, *lines = head.decode("latin-1").split("\r\n")
        version, status = _status(first)
        if status < 200:
            self._pass_over(status)
            return bool(self._buffer)
        self._headers = _headers(lines)
        self._frame(version, status)
        self._status = status
        return True

    def _pass_over(self, status: int) -> None:
        self._interim += 1
        if self._interim > _INTERIM_MAX or status == _SWITCHED:
            msg = "the answer goes over to what nobody asked for, or never comes"
            raise ValueError(msg)

    def _frame(self, version: str, status: int) -> None:
        """Where the body ends. Two ways to say it, and others may have read the other one: the last answer of all."""
        options = _tokens(self._headers.get("connection", ""))
        self._keeps = version == "HTTP/1.1" and "close" not in options
        coding, length = self._headers.get("transfer-encoding"), self._headers.get("content-length")
        if coding is not None and length is not None:
            self._keeps = False
        if not self._has_body or status in _BODYLESS:
            self._length = 0
        elif coding is not None:
            if _tokens(coding) != ["chunked"]:
                msg = f"an answer in the coding {coding!r}"
                raise ValueError(msg)
            self._chunks = bytearray()
        elif length is not None:
            self._length = _number(length, 10)
            self._require_room(self._length)
        else:
            self._keeps = False

    def _read_chunks(self, body: bytearray) -> bool:
        """True after the last. A trailer is passed over."""
        while True:
            end = self._buffer.find(b"\r\n", 0, _CHUNK_LINE_MAX_BYTES)
            if end < 0:
                _require_end(self._buffer, 0, _CHUNK_LINE_MAX_BYTES)
                return False
            size = _number(self._buffer[:end].decode("latin-1").partition(";")[0].strip(" \t"), 16)
            if size == 0:
                return self._read_trailer(end)
            self._require_room(len(body) + size)
            start = end + 2
            if len(self._buffer) < start + size + 2:
                return False
            body += self._buffer[start : start + size]
            if self._buffer[start + size : start + size + 2] != b"\r\n":
                msg = "a chunk of the answer is longer than it says"
                raise ValueError(msg)
            del self._buffer[: start + size + 2]

    def _read_trailer(self, end: int) -> bool:
        last = self._buffer.find(b"\r\n\r\n", end, end + _HEAD_MAX_BYTES)
        if last < 0:
            _require_end(self._buffer, end, _HEAD_MAX_BYTES)
            return False
        del self._buffer[: last + 4]
        return True

    def _require_room(self, size: int) -> None:
        if size > self._max_bytes:
            msg = f"the answer has more than {self._max_bytes} bytes"
            raise AnswerTooLarge(msg)


def _require_end(buffer: bytearray, start: int, most: int) -> None:
    if len(buffer) >= start + most:
        msg = "a line of the answer has no end"
        raise ValueError(msg)


def _status(line: str) -> tuple[str, int]:
    version, _, rest = line.partition(" ")
    code = rest[:3]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not re.fullmatch("[1-9][0-9]{2}", code):
        raise ValueError(_NO_ANSWER)
    return version, int(code)


def _headers(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            msg = "the answer has a header that is none"
            raise ValueError(msg)
        name, value = name.lower(), value.strip()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _tokens(value: str) -> list[str]:
    return [token.strip().lower() for token in value.split(",")]


def _number(text: str, base: int) -> int:
    digits = "0123456789abcdef"[:base]
    if not text or len(text) > 16 or set(text.lower()) - set(digits):
        msg = "the answer says no length"
        raise ValueError(msg)
    return int(text, base)
