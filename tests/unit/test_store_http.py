"""HTTP/1.1 answers in whatever pieces, and connections that are used again, given up and limited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.opensearch.http import HttpClient, HttpHost
from indexers.opensearch.http_answer import AnswerReader, HttpAnswer

SIZED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"4\r\nhell\r\n1;name=value\r\no\r\n0\r\nTrailer: x\r\n\r\n"
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED
NO_BODY = b"HTTP/1.1 204 No Content\r\n\r\n"
TWICE = b"HTTP/1.1 200 OK\r\nWarning: a\r\nwarning:  b \r\ncontent-length: 0\r\n\r\n"
JSON = {"content-type": "application/json", "content-length": "5"}


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (SIZED, HttpAnswer(status=200, headers=JSON, body=b"hello")),
        (CHUNKED, HttpAnswer(status=201, headers={"transfer-encoding": "Chunked"}, body=b"hello")),
        (INTERIM, HttpAnswer(status=200, headers=JSON, body=b"hello")),
        (NO_BODY, HttpAnswer(status=204, headers={}, body=b"")),
        (TWICE, HttpAnswer(status=200, headers={"warning": "a, b", "content-length": "0"}, body=b"")),
    ],
    ids=["sized", "chunked", "interim", "no body", "a header twice"],
)
@given(data=st.data())
def test_an_answer_is_read_in_whatever_pieces(data: st.DataObject, raw: bytes, answer: HttpAnswer) -> None:
    cuts = data.draw(st.sets(st.integers(1, len(raw) - 1), max_size=8)) if len(raw) > 1 else set()
    reader = AnswerReader()
    places = [0, *sorted(cuts), len(raw)]
    found = [reader.feed(raw[start:end]) for start, end in pairwise(places)]
    assert found == [*[None] * len(cuts), answer]
    assert reader.may_go_on


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"answer"):
        AnswerReader().feed(raw)


def test_the_end_of_the_connection_ends_a_body_of_no_length_and_no_other() -> None:
    endless = AnswerReader()
    assert endless.feed(b"HTTP/1.0 200 OK\r\n\r\nab") is None
    assert endless.feed(b"c") is None
    assert endless.end() == HttpAnswer(status=200, headers={}, body=b"abc")
    assert not endless.may_go_on
    for part in (b"", b"HTTP/1.1 2", SIZED[:-1], CHUNKED[:-1]):
        reader = AnswerReader()
        assert reader.feed(part) is None
        assert reader.end() is None


def test_an_answer_without_body_or_with_more_behind_it() -> None:
    head = AnswerReader(has_body=False)
    answer = head.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    assert (answer and answer.body, head.may_go_on) == (b"", True)
    followed = AnswerReader()
    assert followed.feed(SIZED + b"x") is not None
    assert not followed.may_go_on


Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def client_of(handler: Handler, *, limit: int = 2) -> AsyncIterator[tuple[HttpClient, list[bytes]]]:
    """A client of a server that hands each request's bytes to `handler`; and what came, a connection an entry."""
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
    client = HttpClient(HttpHost(name="127.0.0.1", port=server.sockets[0].getsockname()[1]), limit=limit)
    try:
        yield client, connections
    finally:
        await client.close()
        server.close()
        await server.wait_closed()


async def answering(_request: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(SIZED)


async def test_a_request_as_it_goes_out_and_one_connection_for_all() -> None:
    async with client_of(answering) as (client, connections):
        for body in (b"abc", b"x" * 300_000):
            answer = await client.ask("POST", "/_msearch?a=b", {"user-agent": "test"}, body)
            assert (answer.status, answer.body) == (200, b"hello")
        [sent] = connections
    first, _, _ = sent.partition(b"abc")
    lines = first.decode().split("\r\n")
    assert lines[0] == "POST /_msearch?a=b HTTP/1.1"
    assert lines[1].startswith("host: 127.0.0.1:")
    assert lines[2:] == ["content-length: 3", "user-agent: test", "", ""]


def test_the_loop_that_the_query_service_runs_on() -> None:
    uvloop = pytest.importorskip("uvloop", reason="there is none for Windows")

    async def ask_twice() -> None:
        async with client_of(answering) as (client, connections):
            answers = [(await client.ask("POST", "/", {}, b"x" * size)).body for size in (3, 300_000)]
            assert (answers, len(connections)) == ([b"hello", b"hello"], 1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ask_twice())


async def test_no_more_connections_than_the_limit() -> None:
    async def slowly(_request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.01)
        writer.write(SIZED)

    async with client_of(slowly, limit=2) as (client, connections):
        await asyncio.gather(*(client.ask("GET", "/", {}, b"") for _ in range(8)))
        assert len(connections) == 2


@pytest.mark.parametrize(
    "answer",
    [
        SIZED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        SIZED.replace(b"HTTP/1.1", b"HTTP/1.0"),
        SIZED + b"more",
    ],
)
async def test_a_connection_that_ends_or_says_too_much_is_used_once(answer: bytes) -> None:
    async def once(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with client_of(once) as (client, connections):
        for _ in range(2):
            assert (await client.ask("POST", "/", {}, b"")).body == b"hello"
        assert len(connections) == 2


@pytest.mark.parametrize(("method", "times"), [("PUT", 2), ("GET", 2), ("POST", 1)])
async def test_only_an_idempotent_request_is_repeated_when_an_idle_connection_was_lost(
    method: str, times: int
) -> None:
    seen = 0

    async def second_cut(_request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        if seen == 2:
            writer.transport.abort()
        else:
            writer.write(SIZED)

    async with client_of(second_cut) as (client, _):
        await client.ask("GET", "/", {}, b"")
        if times == 2:
            assert (await client.ask(method, "/", {}, b"")).body == b"hello"
        else:
            with pytest.raises(ConnectionError):
                await client.ask(method, "/", {}, b"")
        assert seen == 1 + times


@pytest.mark.parametrize("part", [b"", SIZED[:-1], b"nonsense\r\n\r\n"])
async def test_half_an_answer_is_none(part: bytes) -> None:
    async def half(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        writer.close()

    async with client_of(half) as (client, connections):
        with pytest.raises(ConnectionError):
            await client.ask("GET", "/", {}, b"")
        assert len(connections) == 1


async def test_an_abandoned_request_leaves_its_answer_to_nobody() -> None:
    waits = [0.2, 0.0]

    async def late(_request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(waits.pop(0))
        writer.write(SIZED.replace(b"hello", b"late!" if waits else b"other"))

    async with client_of(late) as (client, connections):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.ask("GET", "/", {}, b"")
        assert (await client.ask("GET", "/", {}, b"")).body == b"other"
        assert len(connections) == 2
