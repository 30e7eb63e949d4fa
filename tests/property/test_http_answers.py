"""The reader of HTTP answers: where the bytes are cut decides nothing, and no bytes make it wait without bound."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from indexers.opensearch.http_answer import AnswerReader, HttpAnswer

MAX_BYTES = 64
NAMES = st.text("abcXYZ-", min_size=1, max_size=8)
VALUES = st.text("abc ,;=", max_size=12)
BODIES = st.binary(max_size=MAX_BYTES)
LINES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 900\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Connection: close\r\n",
        b"\r\n",
        b"5\r\nhello\r\n",
        b"5;a=b\r\nhello\r\n",
        b"fffffffffffffff\r\n",
        b"0\r\n\r\n",
        b"0\r\nA: b\r\n\r\n",
        b"\n",
        b"\r",
        b"hello",
    ]
)
#: Nearly answers: their lines in any order, and anything between them.
NEARLY = st.lists(st.one_of(LINES, LINES, st.binary(max_size=6)), max_size=12).map(b"".join)


def chunked(body: bytes, sizes: list[int]) -> bytes:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(body[at : at + size])
        at += size
    pieces.append(body[at:])
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


def told(raw: bytes, cuts: set[int]) -> tuple[HttpAnswer | str | None, bool]:
    """An answer, what is wrong with it, or None for too little; and whether its connection may go on."""
    reader = AnswerReader(max_bytes=MAX_BYTES)
    answer: HttpAnswer | None = None
    rest = b""
    places = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    try:
        for start, end in pairwise(places):
            if answer is None:
                answer = reader.feed(raw[start:end])
            else:
                rest += raw[start:end]
    except ValueError as fault:
        return type(fault).__name__, False
    return answer, reader.may_go_on and not rest


@given(
    status=st.sampled_from([200, 404, 503]),
    headers=st.dictionaries(NAMES.map(lambda name: f"x-{name}".lower()), VALUES, max_size=6),
    body=BODIES,
    sizes=st.none() | st.lists(st.integers(1, 20), max_size=5),
    cuts=st.sets(st.integers(1, 400), max_size=12),
)
def test_what_is_written_is_read(
    status: int, headers: dict[str, str], body: bytes, sizes: list[int] | None, cuts: set[int]
) -> None:
    framing = {"content-length": str(len(body))} if sizes is None else {"transfer-encoding": "chunked"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | framing).items())
    sent = body if sizes is None else chunked(body, sizes)
    raw = f"HTTP/1.1 {status} x\r\n{lines}\r\n".encode() + sent
    wanted = {name: value.strip() for name, value in (headers | framing).items()}
    assert told(raw, cuts) == (HttpAnswer(status=status, headers=wanted, body=body), True)


@given(raw=NEARLY, cuts=st.sets(st.integers(1, 200), max_size=12))
@example(raw=b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", cuts={25})
@example(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n0\r\n\r\n", cuts={50, 51})
def test_where_bytes_are_cut_decides_nothing(raw: bytes, cuts: set[int]) -> None:
    assert told(raw, cuts) == told(raw, set()) == told(raw, set(range(1, len(raw))))


@given(begun=NEARLY, garbage=st.binary(min_size=1, max_size=64))
@example(begun=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", garbage=b"1")
@example(begun=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", garbage=b"a: b\r\n")
@example(begun=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", garbage=b"a")
@example(begun=b"", garbage=b"HTTP/1.1 100 Continue\r\n\r\n")
def test_no_bytes_are_taken_in_without_end(begun: bytes, garbage: bytes) -> None:
    """What comes again and again becomes an answer or an error: within a head's bound, and the body's behind it."""
    reader = AnswerReader(max_bytes=MAX_BYTES)
    endless = garbage * (80_000 // len(garbage) + 1)
    try:
        answer = reader.feed(begun) or reader.feed(endless) or reader.feed(endless)
    except ValueError:
        return
    assert answer is not None
