"""HTTP/1.1 to one host over connections that stay open: as little between a search and its socket as there can be.

A general client (cookies, redirects, tracing, a task to write each body) costs a tenth of what a search costs here.
An answer is held whole, up to a bound: the engine's are as large as what was asked. Compressed ones are not asked for.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import quote

from indexers.opensearch.http_answer import ANSWER_MAX_BYTES, AnswerReader, AnswerTooLarge, HttpAnswer

#: An idle connection is left after this time: what stands between may have forgotten it.
_IDLE_SECONDS: Final = 15.0
#: A body up to this size goes out with its head in one piece.
_ONE_PIECE_BYTES: Final = 262_144
#: May be sent again when a connection that lay idle turns out to be lost.
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
#: What would end a request's line or its target early; halves of a character have no bytes.
_NO_TARGET: Final = re.compile("[\x00-\x20\x7f\ud800-\udfff]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NO_HEADER_VALUE: Final = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


class AnswerGivenUp(OSError):  # noqa: N818 - a kind of answer
    """Something answers, but more than can be held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpHost:
    name: str
    port: int
    #: None: plain http.
    tls: ssl.SSLContext | None = None

    @property
    def header(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{name if name.isascii() else name.encode('idna').decode()}:{self.port}"


class HttpClient:
    """At most `limit` requests at once; more wait. Of one event loop. Raises OSError for what isn't answered."""

    def __init__(self, host: HttpHost, *, limit: int, answer_max_bytes: int = ANSWER_MAX_BYTES) -> None:
        self._host = host
        self._answer_max_bytes = answer_max_bytes
        self._free = asyncio.Semaphore(limit)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()

    async def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, is_read: bool = False
    ) -> HttpAnswer:
        """One request, one answer. Cancelled, it closes its connection. ValueError: such a request can't be sent.

        A connection that lay idle may be lost before this side hears of it. What may be repeated (`is_read`: a POST
        that changes nothing) goes out once more then, at once and on a new connection, if nothing of an answer came.
        """
        sent = {"host": self._host.header, "content-length": str(len(body)), **headers}
        head = _head(method, target, sent)
        async with self._free:
            known = self._known()
            if known is not None:
                try:
                    return await self._answer(known, method, head, body)
                except OSError:
                    if known.answered or not (is_read or method in _REPEATABLE):
                        raise
            return await self._answer(await self._connected(), method, head, body)

    async def close(self) -> None:
        """Returns when the connections are closed, at the latest after a second."""
        lost = [connection.lost for connection in self._open]
        for connection in tuple(self._open):
            connection.transport.close()
        self._idle.clear()
        if lost:
            await asyncio.wait(lost, timeout=1.0)
        for connection in tuple(self._open):
            connection.transport.abort()

    async def _answer(self, connection: _Connection, method: str, head: bytes, body: bytes) -> HttpAnswer:
        try:
            answer = await connection.ask(method, head, body)
        except BaseException:
            connection.transport.abort()
            raise
        if connection.is_usable:
            connection.idle_since = connection.loop.time()
            self._idle.append(connection)
        else:
            # Not `close`: that waits for the rest of a request that nobody may be reading.
            connection.transport.abort()
        return answer

    def _known(self) -> _Connection | None:
        """The one that was used last; those that lay idle too long are closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and connection.loop.time() - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.transport.close()
        return None

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        host, tls = self._host, self._host.tls
        _, connection = await loop.create_connection(
            lambda: _Connection(loop, self._answer_max_bytes),
            host.name,
            host.port,
            ssl=tls,
            server_hostname=None if tls is None else host.name,
        )
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection


class _Connection(asyncio.Protocol):
    """One request at a time."""

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, answer_max_bytes: int) -> None:
        self.loop = loop
        self._answer_max_bytes = answer_max_bytes
        self.idle_since = 0.0
        #: Done when the connection is no more.
        self.lost: asyncio.Future[None] = loop.create_future()
        self._reader: AnswerReader | None = None
        self._waiter: asyncio.Future[HttpAnswer] | None = None

    @property
    def is_usable(self) -> bool:
        """Nothing is open on it, and it may be asked again."""
        return (
            not self.lost.done()
            and not self.transport.is_closing()
            and not self.transport.get_write_buffer_size()
            and (self._reader is None or self._reader.may_go_on)
        )

    @property
    def answered(self) -> bool:
        """Whether anything of the last answer came."""
        return self._reader is not None and self._reader.has_begun

    async def ask(self, method: str, head: bytes, body: bytes) -> HttpAnswer:
        self._reader = AnswerReader(has_body=method != "HEAD", max_bytes=self._answer_max_bytes)
        self._waiter = self.loop.create_future()
        if self.lost.done():
            raise ConnectionResetError(_LOST)
        if len(body) <= _ONE_PIECE_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        return await self._waiter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is one by what it does, not by its type.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._reader is None or self._waiter is None or self._waiter.done():
            # Nobody asked: what follows could be taken for the next answer.
            self.transport.abort()
            return
        try:
            answer = self._reader.feed(data)
        except ValueError as fault:
            kind = AnswerGivenUp if isinstance(fault, AnswerTooLarge) else ConnectionResetError
            self._fail(kind(str(fault)))
            self.transport.abort()
            return
        if answer is not None:
            self._waiter.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)
        if self._waiter is None or self._waiter.done():
            return
        answer = self._reader.end() if self._reader is not None and exc is None else None
        if answer is None:
            self._fail(ConnectionResetError(_LOST if exc is None else str(exc)))
        else:
            self._waiter.set_result(answer)

    def _fail(self, fault: OSError) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(fault)


def _head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """A target's other characters go percent-encoded, as UTF-8. A refused value isn't told: it may be secret."""
    if not target or _NO_TARGET.search(target):
        msg = f"no request can be made for {target!r}"
        raise ValueError(msg)
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or _NO_HEADER_VALUE.search(value):
            msg = f"the header {name!r} of a request can't be sent: in its name or value is what HTTP doesn't allow"
            raise ValueError(msg)
    told = target if target.isascii() else quote(target, safe=string.punctuation)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {told} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


_LOST: Final = "the connection was closed before the answer was whole"
