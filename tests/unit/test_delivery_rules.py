"""What keeps a deletion from being undone: the gate's order, versions that can be, the age of a replay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from dirty_equals import IsStr

from indexers.domain.hashing import Decision, decide
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.errors import PoisonRecord
from indexers.opensearch.rows import GateRow
from streams.batch import Poisoned, Record
from streams.dlq import letter_of, refusal
from streams.events import DeadLetter, DocumentChanged, FileChange, MemoryWrite, decode, encode, now_iso
from streams.topics import Topics
from streams.versions import VersionClock, now_version

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
DAY = 24 * 3_600 * 1_000_000
TOPICS = Topics("t")


def tombstone(version: int, event_id: str) -> GateRow:
    return GateRow(
        tenant_id="acme", agent_id="ada", team_id=None, scope="shared", doc_id="d", content_hash="",
        versions="v", version=version, event_id=event_id, deleted=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "event_id", "expected"),
    [
        pytest.param(20, "b", Decision.INDEX, id="a newer deletion raises the tombstone"),
        pytest.param(10, "c", Decision.INDEX, id="newer by its id"),
        pytest.param(10, "b", Decision.SKIP_SAME, id="the very same"),
        pytest.param(10, "a", Decision.SKIP_OLDER, id="older by its id"),
        pytest.param(9, "b", Decision.SKIP_OLDER, id="older"),
    ],
)
def test_a_deletion_over_a_tombstone(version: int, event_id: str, expected: Decision) -> None:
    row = tombstone(10, "b")
    found = decide(event_version=version, event_id=event_id, content_hash=None, versions="v", row=row)
    assert found is expected


def event(kind: type[Any], version: int, **more: Any) -> Any:
    owner = {"tenant_id": "acme", "agent_id": "ada", "scope": Scope.SHARED, "occurred_at": now_iso()}
    special: dict[type[Any], dict[str, Any]] = {
        FileChange: {"kind": "upserted", "vault_path": "a.md", "content": b"x"},
        MemoryWrite: {"title": None, "content": "x"},
        DocumentChanged: {
            "kind": "upserted",
            "doc_id": HOME.document("a.md").doc_id,
            "content_hash": "",
            "chunker_version": "c",
        },
    }
    return kind(event_id="e", version=version, path="a.md", **(owner | special[kind] | more))


@pytest.mark.parametrize("kind", [FileChange, MemoryWrite, DocumentChanged])
@pytest.mark.parametrize("version", [-5, 2**62, 10**30])
def test_a_version_that_no_clock_can_have_drawn_is_refused(kind: type[Any], version: int) -> None:
    value = encode(event(kind, 7)).replace(b'"version":7', b'"version":%d' % version)
    with pytest.raises(PoisonRecord) as raised:
        decode(value, kind)
    assert raised.value.error_class == "invalid_fields"


@pytest.mark.parametrize("kind", [FileChange, MemoryWrite, DocumentChanged])
def test_a_clock_may_be_ahead_by_less_than_a_day(kind: type[Any]) -> None:
    for version in (0, now_version() + DAY - 60_000_000):
        assert decode(encode(event(kind, version)), kind).version == version
    with pytest.raises(PoisonRecord):
        decode(encode(event(kind, now_version() + DAY + 60_000_000)), kind)


def test_the_clock_follows_what_it_sees_but_no_absurd_version() -> None:
    clock = VersionClock()
    ahead = now_version() + DAY // 2
    clock.observe(ahead)
    assert clock.next() == ahead + 1
    for absurd in (2**62, now_version() + 2 * DAY):
        clock.observe(absurd)
    assert clock.next() == ahead + 2


NOW = datetime(2026, 11, 30, tzinfo=UTC)


def letter(value: bytes, *, failed_at: datetime) -> DeadLetter:
    record = Record(topic=TOPICS.file_changes, partition=0, offset=0, key=None, value=value, timestamp=0.0)
    made = letter_of(Poisoned(record=record, error=PoisonRecord("parse_failed", "")), agent="ingest")
    return msgspec.structs.replace(made, failed_at=failed_at.isoformat())


def test_a_letter_does_not_grow_younger_by_failing_again() -> None:
    """Each failed replay is a letter of its own, with a new time: the event keeps its version."""
    drawn = int((NOW - timedelta(days=31)).timestamp()) * 1_000_000
    old = letter(encode(event(FileChange, drawn)), failed_at=NOW - timedelta(days=1))
    assert refusal(old, topics=TOPICS, now=NOW) == IsStr(regex="its event is 31 days old.*")
    young = letter(encode(event(FileChange, drawn + 2 * DAY)), failed_at=NOW - timedelta(days=1))
    assert refusal(young, topics=TOPICS, now=NOW) is None


@pytest.mark.parametrize(
    "value", [b"\x00\xff", b"{}", b'{"version":"x"}', b'{"version":%d}' % 10**30, b'{"version":-%d}' % 10**30]
)
def test_a_letter_without_a_version_is_as_old_as_its_failure(value: bytes) -> None:
    assert refusal(letter(value, failed_at=NOW - timedelta(days=29)), topics=TOPICS, now=NOW) is None
    assert refusal(letter(value, failed_at=NOW - timedelta(days=31)), topics=TOPICS, now=NOW) == IsStr(
        regex="failed 31 days ago.*"
    )
