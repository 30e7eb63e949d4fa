"""What the client sends about memories, and how it reads how far a change has come."""

from __future__ import annotations

import pytest

from hopline import memory_calls
from hopline.calls import read_answer
from hopline.memory_answers import STATES, Event
from hopline.memory_calls import Memory, Statement


def event(state: str) -> Event:
    return Event(event_id="e", doc_id="d", path="a.md", kind="write", version=1, state=state, stages=[])


def test_only_what_is_given_is_sent_and_each_write_has_a_key() -> None:
    first, second = memory_calls.write(Memory(content="한글")), memory_calls.write(Memory(content="한글"))
    assert first.json is not None
    assert second.json is not None
    assert set(first.json) == {"content", "idempotency_key"}
    assert first.json["idempotency_key"] != second.json["idempotency_key"]
    said = Statement(
        subject="Ada",
        subject_label="person",
        type="leads",
        object="Ops",
        object_label="team",
        quote="Ada leads Ops",
    )
    whole = memory_calls.write(
        Memory(content="x", tags=["a"], position=0, relations=[said], idempotency_key="k"),
        wait_for="searchable",
        timeout_seconds=2.5,
    )
    assert whole.json == {
        "content": "x",
        "tags": ["a"],
        "position": 0,
        "relations": [
            {
                "subject": "Ada",
                "subject_label": "person",
                "type": "leads",
                "object": "Ops",
                "object_label": "team",
                "quote": "Ada leads Ops",
            }
        ],
        "idempotency_key": "k",
    }
    assert whole.params == {"wait_for": "searchable", "timeout_seconds": "2.5"}


def test_ids_are_quoted_and_a_forget_may_be_repeated() -> None:
    call = memory_calls.forget("a/b?c")
    assert (call.method, call.path) == ("DELETE", "/v1/documents/a%2Fb%3Fc")
    assert call.headers is not None
    assert len(call.headers["idempotency-key"]) == 36
    assert memory_calls.update("a/b", Memory(content="x")).path == "/v1/memories/a%2Fb"
    assert memory_calls.event("e/1").path == "/v1/events/e%2F1"


def test_every_memory_of_a_batch_has_a_key_of_its_own() -> None:
    call = memory_calls.write_many([Memory(content="a"), Memory(content="b", idempotency_key="k")])
    assert call.json is not None
    keys = [memory["idempotency_key"] for memory in call.json["memories"]]
    assert keys[1] == "k"
    assert keys[0] != "k"


@pytest.mark.parametrize(
    ("state", "reached", "ended"),
    [
        ("accepted", {"accepted"}, False),
        ("searchable", {"accepted", "ingested", "searchable"}, False),
        ("linked", set(STATES), True),
        ("failed", set(), True),
        ("overtaken", set(), True),
    ],
)
def test_how_far_a_change_has_come(state: str, reached: set[str], *, ended: bool) -> None:
    found = event(state)
    assert {one for one in STATES if found.reached(one)} == reached  # type: ignore[arg-type]
    assert found.ended is ended


def test_what_a_newer_service_adds_is_ignored() -> None:
    body = (
        b'{"doc_id":"d","event_id":"e","path":"a.md","version":7,"replayed":false,"new":1,"event":{"event_id":"e",'
        b'"doc_id":"d","path":"a.md","kind":"write","version":7,"state":"accepted","stages":[{"stage":"accepted",'
        b'"at":"2026-11-30T00:00:00Z"}],"failure":null}}'
    )
    done = read_answer(memory_calls.write(Memory(content="x")), 202, body, None)
    assert (done.path, done.event.stages[0].stage, done.event.failure) == ("a.md", "accepted", None)
