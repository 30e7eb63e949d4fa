"""HTTP/1.1 answers in whatever pieces, and what is none."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.opensearch.http_answer import AnswerReader, AnswerTooLarge, HttpAnswer
from tests.answering import SIZED

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
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"x" * 70_000,
        b"220 mail.example ESMTP",
        b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 5_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: " + b"b" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"answer"):
        AnswerReader().feed(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nabcdefghijk",
    ],
    ids=["sized", "chunked", "endless"],
)
def test_more_than_can_be_held_is_refused_before_it_is_there(raw: bytes) -> None:
    with pytest.raises(AnswerTooLarge, match="the answer has more than 10 bytes"):
        AnswerReader(max_bytes=10).feed(raw)


def test_an_answer_whose_length_is_said_in_two_ways_is_the_last_of_its_connection() -> None:
    """RFC 9112, 6.3: the coding counts; whoever counted the length takes what follows for another answer."""
    reader = AnswerReader()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = reader.feed(head + b"5\r\nhello\r\n0\r\n\r\n")
    assert (answer and answer.body, reader.may_go_on) == (b"hello", False)


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
