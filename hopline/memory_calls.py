"""The requests about memories as values, for `HoplineClient.call` and its async twin. Pure but for the keys drawn.

A write may be sent twice where an answer got lost: each has an idempotency key, drawn here where none is given, so
that the service takes it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import msgspec

from hopline.calls import Call, given
from hopline.memory_answers import Event, Graph, Milestone, Related, WhoAmI, Written, WrittenBatch


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A relation between two names that the memory says; the quote stands in it, word for word."""

    subject: str
    subject_label: str
    type: str
    object: str
    object_label: str
    quote: str


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be remembered. What isn't given is as the service has it by default."""

    content: str
    title: str | None = None
    #: note, memory, context, skill or session_summary.
    doc_type: str | None = None
    tags: Sequence[str] = ()
    category: str | None = None
    source: str | None = None
    #: personal, team or shared.
    scope: str | None = None
    team: str | None = None
    #: ISO 8601.
    valid_from: str | None = None
    expires_at: str | None = None
    session: str | None = None
    speaker: str | None = None
    position: int | None = None
    relations: Sequence[Statement] = ()
    #: Id of the document that this one says better.
    supersedes: str | None = None
    idempotency_key: str | None = None


def write(
    memory: Memory, *, wait_for: Milestone | None = None, timeout_seconds: float | None = None
) -> Call[Written]:
    """`wait_for`: the answer comes once that is reached, or after the time, whichever is first."""
    return Call(
        method="POST",
        path="/v1/memories",
        answer=Written,
        params=_waiting(wait_for, timeout_seconds),
        json=_body(memory),
    )


def write_many(
    memories: Sequence[Memory], *, wait_for: Milestone | None = None, timeout_seconds: float | None = None
) -> Call[WrittenBatch]:
    """At most 100; all of them or none."""
    return Call(
        method="POST",
        path="/v1/memories/batch",
        answer=WrittenBatch,
        params=_waiting(wait_for, timeout_seconds),
        json={"memories": [_body(memory) for memory in memories]},
    )


def update(
    doc_id: str, changes: Memory, *, wait_for: Milestone | None = None, timeout_seconds: float | None = None
) -> Call[Written]:
    """The text anew, and what else is given. Path, id and scope stay."""
    return Call(
        method="PUT",
        path=f"/v1/memories/{quote(doc_id, safe='')}",
        answer=Written,
        params=_waiting(wait_for, timeout_seconds),
        json=_body(changes),
    )


def forget(
    doc_id: str, *, wait_for: Milestone | None = None, timeout_seconds: float | None = None
) -> Call[Written]:
    """Soft: the file is laid aside in its vault, and a person can move it back."""
    return Call(
        method="DELETE",
        path=f"/v1/documents/{quote(doc_id, safe='')}",
        answer=Written,
        params=_waiting(wait_for, timeout_seconds),
        headers={"idempotency-key": str(uuid4())},
    )


def event(
    event_id: str, *, wait_for: Milestone | None = None, timeout_seconds: float | None = None
) -> Call[Event]:
    params = _waiting(wait_for, timeout_seconds)
    return Call(method="GET", path=f"/v1/events/{quote(event_id, safe='')}", answer=Event, params=params)


def related(doc_id: str, *, page_size: int | None = None) -> Call[Related]:
    path = f"/v1/documents/{quote(doc_id, safe='')}/related"
    return Call(method="GET", path=path, answer=Related, params=given(page_size=page_size))


def graph(doc_id: str, *, depth: int | None = None) -> Call[Graph]:
    """`depth`: edges from the document, 1 to 3."""
    path = f"/v1/documents/{quote(doc_id, safe='')}/graph"
    return Call(method="GET", path=path, answer=Graph, params=given(depth=depth))


def whoami() -> Call[WhoAmI]:
    return Call(method="GET", path="/v1/whoami", answer=WhoAmI)


def _body(memory: Memory) -> Mapping[str, Any]:
    body: dict[str, Any] = msgspec.to_builtins(memory)
    return {"idempotency_key": str(uuid4())} | body


def _waiting(wait_for: Milestone | None, timeout_seconds: float | None) -> dict[str, str | int]:
    seconds = None if timeout_seconds is None else f"{timeout_seconds:g}"
    return given(wait_for=wait_for, timeout_seconds=seconds)
