"""What link takes for an event, and the edges that it makes of one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, mention_id
from streams.agents.link.decode import decode_mentions, newest_of_each
from streams.agents.link.edges import OCCURRENCES_MAX, mention_rows
from streams.batch import Record
from streams.events import CurationCommand, ExtractedMention, MentionsExtracted, encode
from tests.store import namespace

HOME = namespace()
OWNER = EntityNamespace.of(HOME)
DOCUMENT = HOME.document("notes/a.md")


def mention(surface: str, start: int, weight: float = 0.5, **more: Any) -> ExtractedMention:
    values: dict[str, Any] = {"end": start + len(surface), "sentence": f"{surface} {start}"} | more
    return ExtractedMention(surface=surface, start=start, weight=weight, **values)


def told(*mentions: ExtractedMention, **more: Any) -> MentionsExtracted:
    values: dict[str, Any] = {
        "event_id": "e1",
        "tenant_id": "acme",
        "agent_id": "ada",
        "scope": "shared",
        "occurred_at": "2026-11-30T00:00:00+00:00",
        "version": 5,
        "path": "notes/a.md",
        "kind": "upserted",
        "doc_id": DOCUMENT.doc_id,
        "label": "system",
        "mentions": list(mentions),
    }
    return MentionsExtracted(**(values | more))


def command(**more: Any) -> CurationCommand:
    values: dict[str, Any] = {
        "event_id": "e1",
        "tenant_id": "acme",
        "agent_id": "hopline",
        "scope": "shared",
        "occurred_at": "2026-11-30T00:00:00+00:00",
        "version": 5,
        "kind": "merge",
        "label": "system",
        "keys": ["a", "b"],
        "by": "ada",
    }
    return CurationCommand(**(values | more))


def record(event: msgspec.Struct | bytes | None, key: bytes = OWNER.record_key("system")) -> Record:
    value = encode(event) if isinstance(event, msgspec.Struct) else event
    return Record(topic="t", partition=0, offset=0, key=key, value=value, timestamp=0.0)


def reasons(*records: Record) -> list[str]:
    return [str(poisoned.error) for poisoned in decode_mentions(records).poisoned]


def test_both_kinds_of_event_are_told_apart() -> None:
    decoded = decode_mentions([record(told(mention("Osprey", 0))), record(command())])
    assert [(w.doc_id, w.place.label) for w in decoded.words] == [(DOCUMENT.doc_id, "system")]
    assert [(c.op.keys, c.place.namespace) for c in decoded.commands] == [(("a", "b"), OWNER)]
    assert decoded.poisoned == []


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (None, "null_value"),
        (b"not json", "not_json"),
        (b'{"schema_version":1}', "invalid_fields"),
        (b'{"schema_version":2,"kind":"merge"}', "unknown_schema"),
        (told(kind="moved"), "invalid_fields: kind 'moved'"),
        (told(doc_id="6d9f6a53-0c1c-5c0e-8a39-0e8f6e1c3a11"), "invalid_fields: doc_id"),
        (told(mention("Osprey", 0), kind="deleted"), "invalid_fields: a deleted document"),
        (told(mention("Osprey", 0, end=5)), "invalid_fields: a mention of 6 characters"),
        (told(mention("Osprey", -1)), "invalid_fields: a mention of 6 characters"),
        (told(mention("", 3)), "invalid_fields: a mention of 0 characters"),
        (told(mention("Osprey", 0, 1.01)), "invalid_fields: weight 1.01"),
        (told(mention("Osprey", 0, source="guess")), "invalid_fields: source 'guess'"),
        (command(keys=["a"]), "invalid_fields: merge speaks of 2"),
        (command(keys=["a", "a"]), "invalid_fields: merge speaks of 2"),
        (command(kind="block", keys=["a", ""]), "invalid_fields: block speaks of 1"),
        (command(kind="rename", keys=["a"]), "invalid_fields: a rename"),
        (command(undoes="e0"), "invalid_fields: merge can't undo"),
        (command(kind="split"), "invalid_fields"),
        (command(by=""), "invalid_fields"),
        (command(event_id=""), "invalid_fields: the event has no id"),
        (command(occurred_at="yesterday"), "invalid_fields"),
        # Before the year 1 in UTC.
        (command(occurred_at="0001-01-01T00:00:00+01:00"), "invalid_fields"),
        (command(keys=["a", "b" * 1_001]), "invalid_fields: a name has at most"),
    ],
)
def test_what_is_no_event(event: msgspec.Struct | bytes | None, reason: str) -> None:
    [said] = reasons(record(event))
    assert said.startswith(reason)


def test_labels_and_keys_are_checked() -> None:
    assert reasons(record(told(label="a/b"), OWNER.record_key("a/b")))[0].startswith("invalid_fields: label")
    assert reasons(record(told(), b"k")) == [
        "invalid_fields: the record's key is not that of tenant, namespace and label"
    ]
    assert "key" in reasons(record(command(), OWNER.record_key("team")))[0]


def test_of_one_version_the_later_word_counts() -> None:
    older, first, again = told(version=4), told(mention("Osprey", 0)), told(mention("Heron", 0))
    other = told(label="team")
    words = decode_mentions([record(e) for e in (first, older, again)]).words
    words += decode_mentions([record(other, OWNER.record_key("team"))]).words
    assert [word.event for word in newest_of_each(words)] == [again, other]


def test_one_edge_a_name_with_its_strongest_occurrence() -> None:
    strongest = mention("OSPREY", 20, 0.9, source="pattern")
    [word] = decode_mentions(
        [record(told(mention("Osprey", 40, 0.9), mention("Osprey", 0), strongest, mention(" . ", 60)))]
    ).words
    key = name_key("Osprey", "system")
    name_id = OWNER.name_id("system", key)
    rows = mention_rows(word)
    assert list(rows) == [mention_id(DOCUMENT.doc_id, name_id)]
    [row] = rows.values()
    occurrence = ("start", "end", "surface", "weight", "sentence")
    assert msgspec.to_builtins(row) == {
        "tenant_id": "acme",
        "agent_id": "ada",
        "team_id": None,
        "scope": "shared",
        "doc_id": DOCUMENT.doc_id,
        "path": "notes/a.md",
        "name_id": name_id,
        "namespace": "shared",
        "label": "system",
        "key": key,
        "surface": "OSPREY",
        "weight": 0.9,
        "start": 20,
        "end": 26,
        "sentence": "OSPREY 20",
        "occurrences": [
            dict(zip(occurrence, values, strict=True))
            for values in (
                (0, 6, "Osprey", 0.5, "Osprey 0"),
                (20, 26, "OSPREY", 0.9, "OSPREY 20"),
                (40, 46, "Osprey", 0.9, "Osprey 40"),
            )
        ],
        "count": 3,
        "source": "pattern",
        "version": 5,
    }


def test_occurrences_are_capped_and_counted() -> None:
    [word] = decode_mentions([record(told(*[mention("Osprey", 10 * n) for n in range(30)]))]).words
    [row] = mention_rows(word).values()
    assert (len(row.occurrences), row.count) == (OCCURRENCES_MAX, 30)


def test_weights_that_are_no_numbers() -> None:
    raw = encode(told(mention("Osprey", 0))).replace(b"0.5", b"1e999")
    assert reasons(record(raw))[0].startswith(("invalid_fields", "not_json"))
