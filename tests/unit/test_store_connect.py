"""What the gate hears of a server that closes, says too much or is asked what can't be sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from opensearchpy import AsyncOpenSearch

from indexers.errors import Away, RefusedRequest, Transient
from indexers.opensearch.connect import connect, request
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings
from tests.answering import Handler, serving

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'


@asynccontextmanager
async def engine(handler: Handler) -> AsyncIterator[tuple[AsyncOpenSearch, list[bytes]]]:
    async with serving(handler) as (port, connections):
        client = connect(OpenSearchSettings(), f"http://127.0.0.1:{port}")
        try:
            yield client, connections
        finally:
            await client.close()


def second_cut() -> tuple[Handler, list[bytes]]:
    """Answers all but the second request: that one's connection it closes instead, as at the end of a keep-alive."""
    seen: list[bytes] = []

    async def handle(sent: bytes, writer: asyncio.StreamWriter) -> None:
        seen.append(sent.split(b" ")[1])
        if len(seen) == 2:
            writer.transport.abort()
        else:
            writer.write(ANSWER)

    return handle, seen


@pytest.mark.parametrize("path", ["/_msearch", "/_mget", "/some/_search"])
async def test_a_read_on_a_connection_that_the_engine_has_closed_is_no_failure(path: str) -> None:
    handle, seen = second_cut()
    waits: list[float] = []
    policy = RetryPolicy(attempts=1, on_wait=lambda _reason, seconds: waits.append(seconds))
    async with engine(handle) as (client, _):
        for _ in range(2):
            answer = await policy.call(lambda: request(client, "POST", path, body=b"{}"))
            assert answer == {"ok": True}
    assert (seen, waits) == ([path.encode()] * 3, [])


@pytest.mark.parametrize("path", ["/_bulk", "/_aliases", "/some/_search/point_in_time"])
async def test_a_write_there_is_told_as_it_is(path: str) -> None:
    handle, seen = second_cut()
    async with engine(handle) as (client, _):
        await request(client, "POST", path, body=b"{}")
        with pytest.raises(Away, match="OpenSearch can't be reached"):
            await RetryPolicy.once().call(lambda: request(client, "POST", path, body=b"{}"))
    assert len(seen) == 2


async def test_an_answer_that_can_not_be_held_is_told_as_such() -> None:
    async def endless(_sent: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n{")

    async with engine(endless) as (client, _):
        with pytest.raises(Transient, match="heard only in part: the answer has more than 268435456 bytes"):
            await request(client, "GET", "/")


async def test_a_request_that_can_not_be_sent_is_refused() -> None:
    handle, seen = second_cut()
    async with engine(handle) as (client, _):
        with pytest.raises(RefusedRequest, match="invalid_request: no request can be made for"):
            await request(client, "GET", "/a\r\nb")
    assert seen == []
