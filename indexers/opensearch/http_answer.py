"""Bytes of a connection → one HTTP/1.1 answer (RFC 9112). Pure: fed as they come, in whatever pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_HEAD_MAX_BYTES: Final = 65_536
_BODYLESS: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """Header names are small; of one given twice, the values are joined by a comma."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AnswerReader:
    """One answer. `feed` and `end` raise ValueError for what is no HTTP/1.1."""

    def __init__(self, *, has_body: bool = True) -> None:
        self._has_body = has_body
        self._buffer = bytearray()
        self._status = 0
        self._headers: dict[str, str] = {}
        #: Bytes of the body, where the head says how many.
        self._length: int | None = None
        self._chunks: bytearray | None = None
        self._keeps = False
        self._is_done = False

    @property
    def has_begun(self) -> bool:
        return bool(self._status or self._buffer)

    @property
    def may_go_on(self) -> bool:
        """The answer is whole, nothing follows it, and the connection stays open."""
        return self._is_done and self._keeps and not self._buffer

    def feed(self, data: bytes) -> HttpAnswer | None:
        """The answer once it is whole."""
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
        end = self._buffer.find(b"\r\n\r\n")
        if max(end, len(self._buffer) if end < 0 else 0) > _HEAD_MAX_BYTES:
            msg = "the head of the answer has no end"
            raise ValueError(msg)
        if end < 0:
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        version, status = _status(first)
        if 100 <= status < 200:
            return bool(self._buffer)
        self._headers = _headers(lines)
        self._frame(version, status)
        self._status = status
        return True

    def _frame(self, version: str, status: int) -> None:
        """Where the body ends."""
        options = _tokens(self._headers.get("connection", ""))
        self._keeps = version == "HTTP/1.1" and "close" not in options
        coding, length = self._headers.get("transfer-encoding"), self._headers.get("content-length")
        if not self._has_body or status in _BODYLESS:
            self._length = 0
        elif coding is not None:
            if _tokens(coding) != ["chunked"]:
                msg = f"an answer in the coding {coding!r}"
                raise ValueError(msg)
            self._chunks = bytearray()
        elif length is not None:
            self._length = _number(length, 10)
        else:
            self._keeps = False

    def _read_chunks(self, body: bytearray) -> bool:
        """True after the last. A trailer is passed over."""
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                return False
            size = _number(self._buffer[:end].decode("latin-1").partition(";")[0].strip(), 16)
            if size == 0:
                return self._read_trailer(end)
            start = end + 2
            if len(self._buffer) < start + size + 2:
                return False
            body += self._buffer[start : start + size]
            if self._buffer[start + size : start + size + 2] != b"\r\n":
                msg = "a chunk of the answer is longer than it says"
                raise ValueError(msg)
            del self._buffer[: start + size + 2]

    def _read_trailer(self, end: int) -> bool:
        last = self._buffer.find(b"\r\n\r\n", end)
        if last < 0:
            return False
        del self._buffer[: last + 4]
        return True


def _status(line: str) -> tuple[str, int]:
    version, _, rest = line.partition(" ")
    code = rest[:3]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdigit() and len(code) == 3):
        msg = "the answer is no HTTP/1.1"
        raise ValueError(msg)
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
