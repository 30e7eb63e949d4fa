"""HTTP/1.1 requests as they go out; connections that are used again, given up and limited."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from indexers.opensearch.http import AnswerGivenUp, HttpClient, HttpHost
from tests.answering import SIZED, client_of


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


async def test_a_post_that_only_reads_is_repeated_too_and_once() -> None:
    seen = 0

    async def first_alone(_request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            writer.write(SIZED)
        else:
            writer.transport.abort()

    async with client_of(first_alone) as (client, connections):
        await client.ask("GET", "/", {}, b"")
        with pytest.raises(ConnectionError):
            await client.ask("POST", "/_msearch", {}, b"", is_read=True)
        assert (seen, len(connections)) == (3, 2)


async def test_a_read_whose_answer_had_begun_is_not_repeated() -> None:
    answers = [SIZED, b"HTTP/1.1 100 Continue\r\n\r\n"]

    async def cut_short(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))
        if not answers:
            writer.close()

    async with client_of(cut_short) as (client, connections):
        await client.ask("GET", "/", {}, b"")
        with pytest.raises(ConnectionError):
            await client.ask("POST", "/_search", {}, b"", is_read=True)
        assert len(connections) == 1


@pytest.mark.parametrize(
    ("target", "sent"), [("/naïve/ü?q=ß%20x", b"/na%C3%AFve/%C3%BC?q=%C3%9F%20x"), ("/a?b=[c]", b"/a?b=[c]")]
)
async def test_a_target_goes_out_in_ascii(target: str, sent: bytes) -> None:
    async with client_of(answering) as (client, connections):
        await client.ask("GET", target, {}, b"")
        assert connections[0].split(b" ")[1] == sent


@pytest.mark.parametrize(
    ("target", "headers", "said"),
    [
        ("/a\r\nX: y", {}, "no request can be made for '/a"),
        ("/a b", {}, "no request can be made for '/a b'"),
        ("", {}, "no request can be made for ''"),
        ("/\ud800", {}, "no request can be made for '/"),
        ("/", {"authorization": "secret\r\nX: y"}, "the header 'authorization' of a request can't be sent"),
        ("/", {"a": "b\0"}, "the header 'a' of a request can't be sent"),
        ("/", {"a": "\u2603"}, "the header 'a' of a request can't be sent"),
        ("/", {"a\nb": "c"}, "the header 'a.*b' of a request can't be sent"),
        ("/", {"a:": "c"}, "the header 'a:' of a request can't be sent"),
    ],
)
async def test_what_would_end_a_line_of_the_request_is_refused(
    target: str, headers: dict[str, str], said: str
) -> None:
    async with client_of(answering) as (client, connections):
        with pytest.raises(ValueError, match=said) as refused:
            await client.ask("GET", target, headers, b"")
        assert "secret" not in str(refused.value)
        assert connections == []


async def test_a_connection_is_given_up_when_the_answer_comes_before_the_request_is_sent() -> None:
    """To close it in good order is to send the rest first, to a server that may never read it."""
    body = b"x" * 32_000_000
    answered, taken = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(SIZED.replace(b"200 OK", b"413 Content Too Large"))
        await answered.wait()
        read = 0
        with suppress(ConnectionError):
            while some := await reader.read(1_000_000):
                read += len(some)
        taken.set_result(read)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    client = HttpClient(HttpHost(name="127.0.0.1", port=server.sockets[0].getsockname()[1]), limit=1)
    answer = await client.ask("POST", "/_bulk", {}, body)
    answered.set()
    assert (answer.status, answer.body) == (413, b"hello")
    assert await taken < len(body)
    await client.close()
    server.close()
    await server.wait_closed()


async def test_too_large_an_answer_is_given_up() -> None:
    async with client_of(answering, answer_max_bytes=4) as (client, _):
        with pytest.raises(AnswerGivenUp, match="the answer has more than 4 bytes"):
            await client.ask("GET", "/", {}, b"")


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
