"""A server that answers with the bytes that a test gives it, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from indexers.opensearch.http import HttpClient, HttpHost
from indexers.opensearch.http_answer import ANSWER_MAX_BYTES

SIZED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[int, list[bytes]]]:
    """The port of a server that hands each request's bytes to `handler`; and what came, a connection an entry."""
    connections: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(connections)
        connections.append(b"")
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                request = head + await reader.readexactly(size)
                connections[number] += request
                await handler(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], connections
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def client_of(
    handler: Handler, *, limit: int = 2, answer_max_bytes: int = ANSWER_MAX_BYTES
) -> AsyncIterator[tuple[HttpClient, list[bytes]]]:
    """A client of such a server; and what came, a connection an entry."""
    async with serving(handler) as (port, connections):
        host = HttpHost(name="127.0.0.1", port=port)
        client = HttpClient(host, limit=limit, answer_max_bytes=answer_max_bytes)
        try:
            yield client, connections
        finally:
            await client.close()
