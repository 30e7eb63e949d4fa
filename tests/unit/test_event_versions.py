"""What a release may change in its events while another one runs beside it (docs/reference/events.md)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from indexers.errors import PoisonRecord
from streams import events
from streams.events import (
    CurationCommand,
    DeadLetter,
    DocumentChanged,
    Event,
    ExtractRequested,
    FileChange,
    MemoryChanged,
    MemoryWrite,
    MentionsExtracted,
    RelationWritten,
    decode,
    encode,
)

HEAD = {
    "schema_version": 1, "event_id": "e", "tenant_id": "acme", "agent_id": "ada", "scope": "shared",
    "occurred_at": "2026-11-30T00:00:00+00:00", "version": 1,
}  # fmt: skip
NOTE = {**HEAD, "path": "a.md"}
#: The least that an event of number 1 may say. A field that must be added here needs a new number.
LEAST: dict[type[msgspec.Struct], dict[str, Any]] = {
    FileChange: {**NOTE, "kind": "upserted", "vault_path": "a.md"},
    MemoryWrite: {**NOTE, "title": None, "content": "x"},
    MemoryChanged: {**NOTE, "kind": "forgotten", "by": "ada"},
    RelationWritten: {
        **NOTE, "kind": "related", "subject": "a", "subject_label": "person", "relation_type": "owns",
        "object": "b", "object_label": "service", "by": "ada",
    },
    DocumentChanged: {
        **NOTE, "kind": "upserted", "doc_id": "d", "content_hash": "sha256:0", "chunker_version": "1",
    },
    MentionsExtracted: {**NOTE, "kind": "upserted", "doc_id": "d", "label": "person"},
    ExtractRequested: {**HEAD, "reason": "r"},
    CurationCommand: {**HEAD, "kind": "block", "label": "person", "keys": ["a"], "by": "ada"},
    DeadLetter: {
        "schema_version": 1, "dead_letter_id": "i", "agent": "ingest", "topic": "t", "partition": 0, "offset": 0,
        "key": None, "value": None, "error_class": "other", "reason": "", "failed_at": "2026-11-30T00:00:00+00:00",
    },
}  # fmt: skip
KINDS = [pytest.param(kind, id=kind.__name__) for kind in LEAST]


def raw(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_that_number_1_may_say_is_read(kind: type[msgspec.Struct]) -> None:
    read = msgspec.to_builtins(decode(raw(LEAST[kind]), kind))
    assert {name: read[name] for name in LEAST[kind]} == LEAST[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_this_release_does_not_know_is_passed_over(kind: type[msgspec.Struct]) -> None:
    newer = LEAST[kind] | {"of_a_newer_release": {"any": ["thing"]}}
    assert decode(raw(newer), kind) == decode(raw(LEAST[kind]), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_this_release_does_not_read_is_told_apart_from_a_fault(
    kind: type[msgspec.Struct],
) -> None:
    """Even where nothing else of the event would decode."""
    with pytest.raises(PoisonRecord, match="schema_version 2; this release reads 1") as caught:
        decode(raw({"schema_version": 2, "all_else": "is new"}), kind)
    assert caught.value.error_class == "unknown_schema"


def test_what_is_written_is_read() -> None:
    assert events.SCHEMA_VERSION in events.READABLE
    written = json.loads(encode(decode(raw(LEAST[FileChange]), FileChange)))
    assert written["schema_version"] == events.SCHEMA_VERSION


def test_a_release_that_reads_two_numbers_reads_the_log_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "READABLE", frozenset({1, 2}))
    numbers = [
        decode(raw(LEAST[FileChange] | {"schema_version": n}), FileChange).schema_version for n in (1, 2)
    ]
    assert numbers == [1, 2]


def test_every_kind_of_event_is_held_to_these_rules() -> None:
    def kinds(parent: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
        below = parent.__subclasses__()
        return set().union(*map(kinds, below)) if below else {parent}

    ours = {kind for kind in kinds(Event) if kind.__module__ == events.__name__}
    assert ours | {DeadLetter} == set(LEAST)
