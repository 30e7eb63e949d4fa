"""What the extract agent tells of a document, and what it is asked for: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from indexers.domain.identity import AgentId, EntityNamespace, Namespace, Scope, TenantId
from indexers.extraction import Extracted, FoundMention
from indexers.opensearch.rows import ExtractionRow
from streams.agents.extract.announce import row_write, tell, tell_end
from streams.agents.extract.requests import decode_requests
from streams.agents.extract.subjects import Subject, newest_subjects
from streams.batch import Record
from streams.events import MentionsExtracted, decode
from streams.extract_requests import request_record
from streams.producer import OutgoingRecord
from streams.topics import Topics

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
RECORD = Record(topic="t", partition=0, offset=0, key=None, value=None, timestamp=0.0)


def subject(path: str = "a.md", version: int = 1, *, whole: bool = False) -> Subject:
    return Subject(
        record=RECORD, document=HOME.document(path), version=version, content_hash="h", text="", whole=whole
    )


def mention(surface: str, start: int, label: str = "person", weight: float = 0.9) -> FoundMention:
    return FoundMention(
        label=label,
        surface=surface,
        start=start,
        end=start + len(surface),
        weight=weight,
        sentence=f"{surface} stands here.",
        source="model",
    )


def events(records: Sequence[OutgoingRecord]) -> list[MentionsExtracted]:
    return [decode(record.value, MentionsExtracted) for record in records]


def test_each_label_is_told_of_under_its_own_key_and_the_retired_one_as_empty() -> None:
    found = Extracted(mentions=(mention("Alice", 0), mention("Ops", 9, "team")), rejected={})
    told = tell(subject(), found, ("person", "team", "berth"), topic="m", max_bytes=100_000)
    assert [(r.topic, r.key) for r in told.events] == [
        ("m", b"acme/shared/person"),
        ("m", b"acme/shared/team"),
        ("m", b"acme/shared/berth"),
    ]
    assert [(e.kind, e.label, [m.surface for m in e.mentions]) for e in events(told.events)] == [
        ("upserted", "person", ["Alice"]),
        ("upserted", "team", ["Ops"]),
        ("upserted", "berth", []),
    ]
    assert (told.kept, told.left_out) == (found.mentions, 0)


def test_the_end_of_a_document_is_told_of_with_the_version_of_its_deletion() -> None:
    ends = events(tell_end(subject(version=3), ("person", "team"), topic="m", version=7))
    assert [(e.kind, e.label, e.version, e.mentions) for e in ends] == [
        ("deleted", "person", 7, []),
        ("deleted", "team", 7, []),
    ]


def test_where_the_broker_takes_no_more_every_name_stands_once_before_any_stands_twice() -> None:
    often = [mention("Alice", at * 20, weight=0.99) for at in range(200)]
    once = [mention(f"Person {at:03d}", 10_000 + at * 20, weight=0.6) for at in range(50)]
    found = Extracted(mentions=(*often, *once), rejected={})
    told = tell(subject(), found, ("person",), topic="m", max_bytes=12_000)
    assert all(len(record.value or b"") <= 12_000 for record in told.events)
    surfaces = [m.surface for m in told.kept]
    assert {m.surface for m in once} | {"Alice"} == set(surfaces)
    assert [m.start for m in told.kept] == sorted(m.start for m in told.kept)
    assert told.left_out == 250 - len(surfaces)
    assert [m.surface for e in events(told.events) for m in e.mentions] == surfaces


def test_the_row_counts_names_not_places() -> None:
    mentions = (mention("Alice Novak", 0), mention("alice novak", 50), mention("Alice Novak", 90, "team"))
    told = tell(
        subject(), Extracted(mentions=mentions, rejected={}), ("person", "team"), topic="m", max_bytes=9_999
    )
    write = row_write(subject(version=5), told, fingerprint="f", rejected=2)
    assert isinstance(write.row, ExtractionRow)
    assert (write.version, msgspec.to_builtins(write.row)) == (
        5,
        {
            "tenant_id": "acme", "agent_id": "ada", "team_id": None, "scope": "shared",
            "doc_id": HOME.document("a.md").doc_id, "namespace": "shared", "version": 5,
            "fingerprint": "f", "mentions": 2, "rejected": 2,
        },
    )  # fmt: skip


def test_the_newest_version_of_a_document_is_extracted_and_what_must_be_done_is() -> None:
    mixed = [subject("a.md", 1), subject("b.md", 4), subject("a.md", 2), subject("b.md", 4, whole=True)]
    chosen = [(s.document.path, s.version, s.whole) for s in newest_subjects(mixed)]
    assert chosen == [("a.md", 2, False), ("b.md", 4, True)]


def test_requests_for_one_page_are_one() -> None:
    shared = EntityNamespace.of(HOME)
    sent = [
        request_record(Topics(), shared, reason="one"),
        request_record(Topics(), shared, reason="two"),
        request_record(Topics(), shared, reason="three", after="x"),
        request_record(
            Topics(), EntityNamespace(tenant_id=TenantId("acme"), owner="team:ops"), reason="four"
        ),
    ]
    asked, poisoned = decode_requests([replace(RECORD, value=record.value) for record in sent])
    assert [(a.owner.owner, a.event.reason) for a in asked] == [
        ("shared", "one"),
        ("shared", "three"),
        ("team:ops", "four"),
    ]
    assert poisoned == []
    assert {record.key for record in sent} == {b"acme/shared", b"acme/team:ops"}
