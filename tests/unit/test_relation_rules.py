"""Statements about relations: what is one, which counts, and where its quote stands."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexers.domain.entities.relations import Statement, check_statement, copies, newest
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.errors import VaultUnavailable, WrongUsage
from indexers.relations import due_relations
from indexers.settings import VaultRoot
from indexers.vault.relations import RelationJournal, read_statements
from streams.agents.ingest.statements import split
from streams.agents.link.journal import curation_records
from streams.batch import Record
from streams.events import MemoryWrite, RelationWritten, encode
from streams.relations import relation_written, require_quote
from streams.topics import Topics

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
TOPICS = Topics("t")
GOOD: dict[str, Any] = {
    "event_id": "e1",
    "tenant_id": "acme",
    "agent_id": "ada",
    "scope": Scope.SHARED,
    "occurred_at": "2026-11-30T00:00:00Z",
    "version": 1,
    "path": "teams.md",
    "kind": "related",
    "subject": "Alice Novak",
    "subject_label": "person",
    "relation_type": "leads",
    "object": "payments team",
    "object_label": "team",
    "quote": "leads",
    "by": "ada",
}


def statement(version: int = 1, **fields: Any) -> Statement:
    return Statement(**(GOOD | {"event_id": f"e{version}", "version": version} | fields))


def record(event: msgspec.Struct, topic: str = TOPICS.memory_writes) -> Record:
    return Record(topic=topic, partition=0, offset=0, key=None, value=encode(event), timestamp=0.0)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"relation_type": "on_call-for"}, id="words joined"),
        pytest.param({"relation_type": "소유"}, id="another script"),
        pytest.param({"subject": "김민수", "object": "결제팀", "quote": "이끈다"}, id="Korean"),
        pytest.param({"subject": "C++", "subject_label": "기술"}, id="a label of another script"),
        pytest.param({"kind": "unrelated", "quote": ""}, id="taken back without a quote"),
    ],
)
def test_what_is_a_statement(fields: dict[str, Any]) -> None:
    check_statement(statement(**fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"relation_type": "is leader of"}, "relation_type: "),
        ({"relation_type": "Leads"}, "relation_type: "),
        ({"relation_type": "leads_"}, "relation_type: "),
        ({"relation_type": "2nd"}, "relation_type: "),
        ({"relation_type": "x" * 65}, "relation_type: "),
        ({"relation_type": unicodedata.normalize("NFD", "소유")}, "relation_type: "),
        ({"subject": "“…”"}, "subject: "),
        ({"object": "x" * 301}, "object: "),
        ({"subject_label": "a person"}, "subject_label: "),
        ({"object_label": ""}, "object_label: "),
        ({"quote": " \n"}, "quote: "),
        ({"quote": "x" * 1_001}, "quote: "),
        ({"by": ""}, "can't name"),
        ({"event_id": ""}, "event_id: "),
        ({"path": "../teams.md"}, "no path inside a vault"),
        ({"occurred_at": "yesterday"}, "yesterday"),
    ],
)
def test_what_is_none(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_statement(statement(**({"version": 1} | fields)))


def test_the_newest_word_on_a_relation_counts_whichever_came_first() -> None:
    said = [
        statement(1),
        statement(2, kind="unrelated", subject="ALICE  NOVAK", object="The payments team"),
        statement(3, subject="Alice Novak's", quote="again"),
        statement(3, event_id="e3+", object="Payments Team", quote="of one version the later id"),
        statement(9, object="billing team"),
    ]
    for order in itertools.permutations(said):
        assert sorted(one.event_id for one in newest(order).values()) == ["e3+", "e9"]


def test_copies_follow_a_document_once() -> None:
    said = [statement(1), statement(2, kind="unrelated"), statement(3, object="billing team")]
    moved = copies(said, "b.md", [])
    assert [(one.path, one.kind, one.version, one.copied_from) for one in moved] == [
        ("b.md", "unrelated", 2, "e2"),
        ("b.md", "related", 3, "e3"),
    ]
    assert copies(said, "b.md", []) == moved
    assert copies(said, "b.md", moved) == []
    assert copies(moved, "teams.md", said) == []
    assert [one.copied_from for one in copies(moved, "c.md", [])] == ["e2", "e3"]
    assert len({one.event_id for one in [*moved, *copies(moved, "c.md", [])]}) == 4


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ("So Alice\n  leads\tthem.", "Alice leads them", "Alice\n  leads\tthem"),
        ("결제팀은 정산을 맡는다.", unicodedata.normalize("NFD", "정산을 맡는다"), "정산을 맡는다"),
        (
            unicodedata.normalize("NFD", "결제팀은 정산을"),
            "결제팀은  정산을",
            unicodedata.normalize("NFD", "결제팀은 정산을"),
        ),
        ("So alice leads them.", "Alice leads them", None),
        ("So **Alice** leads them.", "Alice leads them", None),
    ],
)
def test_a_row_has_the_quote_as_it_stands(text: str, quote: str, found: str | None) -> None:
    due = due_relations(HOME.document("teams.md"), 7, text, [statement(quote=quote)])
    assert [(row.quote, text[row.start : row.end], row.version) for row in due.rows.values()] == (
        [] if found is None else [(found, found, 7)]
    )
    assert (due.unquoted, len(due.gone)) == ((1, 1) if found is None else (0, 0))
    deleted = due_relations(HOME.document("teams.md"), 8, None, [statement(quote=quote)])
    assert (deleted.rows, deleted.unquoted, len(deleted.gone)) == ({}, 0, 1)


def test_records_of_memory_writes_are_told_apart() -> None:
    event = RelationWritten(**GOOD)
    fields = {
        name: GOOD[name] for name in ("event_id", "tenant_id", "agent_id", "scope", "occurred_at", "version")
    }
    memory = record(MemoryWrite(**fields, path="m.md", title=None, content="x"))
    change = record(event, TOPICS.file_changes)
    broken = Record(topic=TOPICS.memory_writes, partition=0, offset=0, key=None, value=b"{", timestamp=0.0)
    wrong = [
        record(msgspec.structs.replace(event, kind="perhaps")),
        record(msgspec.structs.replace(event, subject="!")),
        record(msgspec.structs.replace(event, schema_version=9)),
    ]
    stated, others, poisoned = split([record(event), memory, change, broken, *wrong], TOPICS)
    assert [one.statement for one in stated] == [Statement(**GOOD)]
    assert others == [memory, change, broken]
    assert [(one.record, one.error.error_class) for one in poisoned] == list(
        zip(wrong, ["invalid_fields", "invalid_fields", "unknown_schema"], strict=True)
    )


def test_a_journal_is_read_again_when_somebody_wrote_to_it(tmp_path: Path) -> None:
    root = VaultRoot(name="main", path=tmp_path, tenant="acme", agent="ada")
    mine, other = RelationJournal(root), RelationJournal(root)

    def here() -> None: ...

    def away() -> None:
        msg = "the vault is away"
        raise VaultUnavailable(msg)

    assert mine.read(here) == {}
    assert (
        other.append([statement(1), statement(1), statement(2, tenant_id="zeta"), statement(3, subject="!")])
        == 3
    )
    assert mine.has_changed()
    first = mine.read(away)
    assert (first, mine.left_out, mine.has_changed()) == ({"teams.md": (statement(1),)}, 2, False)
    assert mine.read(away) is first
    mine.append([statement(4, path="b.md")])
    with (tmp_path / ".hopline/relations.jsonl").open("ab") as file:
        file.write(b'{"event_id": "half')
    assert mine.read(here) == {"teams.md": (statement(1),), "b.md": (statement(4, path="b.md"),)}
    (tmp_path / ".hopline/relations.jsonl").unlink()
    with pytest.raises(VaultUnavailable):
        mine.read(away)
    assert sorted(mine.known) == ["b.md", "teams.md"]


@pytest.mark.parametrize("name", ["relations.jsonl", "curation.jsonl"])
def test_of_a_journal_that_can_not_be_read_nothing_is_concluded(tmp_path: Path, name: str) -> None:
    """By verify, and by rebuild before it removes anything."""
    root = VaultRoot(name="main", path=tmp_path, tenant="acme", agent="ada")
    reads: dict[str, Callable[[], object]] = {
        "relations.jsonl": lambda: read_statements(root),
        "curation.jsonl": lambda: curation_records(root, TOPICS),
    }
    read = reads[name]
    assert read() in ({}, ([], 0))
    (tmp_path / ".hopline" / name).mkdir(parents=True)
    with pytest.raises(VaultUnavailable, match=f"main: .*{name}"):
        read()
    (tmp_path / ".hopline" / name).rmdir()
    (tmp_path / ".hopline").rmdir()
    (tmp_path / ".hopline").write_text("no folder")
    with pytest.raises(VaultUnavailable, match=f"main: .*{name}"):
        read()


def test_who_states_a_relation_is_told_what_is_wrong(tmp_path: Path) -> None:
    root = VaultRoot(name="main", path=tmp_path, tenant="acme", agent="ada")
    names = {
        name: GOOD[name] for name in ("subject", "subject_label", "relation_type", "object", "object_label")
    }
    event = relation_written(HOME, "./x//teams.md", version=5, quote="leads  the", **names)
    assert (event.path, event.by, event.kind, event.version) == ("x/teams.md", "ada", "related", 5)
    with pytest.raises(WrongUsage, match="relation_type: "):
        relation_written(HOME, "teams.md", version=5, quote="x", **(names | {"relation_type": "A B"}))
    with pytest.raises(WrongUsage, match="no path inside a vault"):
        relation_written(HOME, "/teams.md", version=5, quote="x", **names)
    require_quote(root, event, cap_bytes=1_000)
    (tmp_path / "x").mkdir()
    (tmp_path / "x/teams.md").write_text("Alice leads\nthe team.", encoding="utf-8")
    require_quote(root, event, cap_bytes=1_000)
    with pytest.raises(WrongUsage, match=r"the quote doesn't stand in x/teams.md"):
        require_quote(root, msgspec.structs.replace(event, quote="Leads the"), cap_bytes=1_000)
