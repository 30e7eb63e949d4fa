"""What ingest decides about a batch: pure, over raw records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.hashing import content_hash
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId, chunk_id, link_id
from indexers.embedders.factory import load_token_counter
from indexers.opensearch.rows import DocumentFacts, GateRow, facts_of
from indexers.planning import FileContent, IndexVersions, Seen, plan_document
from indexers.ports import TokenCounter
from indexers.settings import EmbedderSettings, HealthSettings, IndexingSettings, PatternsRule
from streams.agents.ingest.content import inline_content
from streams.agents.ingest.decode import Arrival, InputEvent, contests, decode_inputs
from streams.agents.ingest.plan import Planner, Sight, choice_of, decide_all
from streams.agents.ingest.work import announcement, gate_write, row_writes
from streams.batch import Record
from streams.events import FileChange, MemoryChange, MemoryChanged, MemoryWrite, encode
from streams.topics import Topics

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
TOPICS = Topics("t")
OWNER: dict[str, Any] = {
    "tenant_id": "acme",
    "agent_id": "ada",
    "scope": Scope.SHARED,
    "occurred_at": "2026-11-30T00:00:00Z",
}
NOW = datetime(2026, 11, 30, tzinfo=UTC)
VERSIONS = "p|c|m|h"
DOC_B = "6f1d6f5e-3c1b-5d0a-9c53-5b8d2f6a7e41"


def change(version: int, text: bytes | None = b"text", path: str = "a.md", **more: Any) -> FileChange:
    values: dict[str, Any] = {"kind": "upserted" if text is not None else "deleted", "content": text}
    return FileChange(
        **OWNER, event_id=f"e{version}", version=version, path=path, vault_path=path, **(values | more)
    )


def memory(version: int, content: str = "memory", path: str = "a.md") -> MemoryWrite:
    return MemoryWrite(
        **OWNER, event_id=f"e{version}", version=version, path=path, title=None, content=content
    )


def ended(version: int, kind: MemoryChange = "forgotten") -> MemoryChanged:
    return MemoryChanged(
        **OWNER, event_id=f"e{version}", version=version, path="a.md", kind=kind, by="ada", superseded_by=None
    )


def updated(version: int) -> MemoryWrite:
    return msgspec.structs.replace(memory(version), updates=[])


def record(event: InputEvent, offset: int = 0) -> Record:
    topic = TOPICS.file_changes if isinstance(event, FileChange) else TOPICS.memory_writes
    return Record(topic=topic, partition=0, offset=offset, key=None, value=encode(event), timestamp=0.0)


def arrivals(*events: InputEvent) -> list[Arrival]:
    found, poisoned = decode_inputs([record(e, n) for n, e in enumerate(events)], TOPICS)
    assert poisoned == []
    return found


def gate(version: int, text: bytes, *, deleted: bool = False, versions: str = VERSIONS) -> GateRow:
    return GateRow(
        tenant_id="acme",
        agent_id="ada",
        team_id=None,
        scope="shared",
        doc_id="d",
        content_hash=content_hash(text),
        versions=versions,
        version=version,
        event_id=f"e{version}",
        deleted=deleted,
    )


def sight(arrival: Arrival) -> Sight:
    event = arrival.event
    assert not isinstance(event, MemoryChanged)
    raw = event.content.encode() if isinstance(event, MemoryWrite) else event.content
    return Sight(arrival=arrival, content=None if raw is None else inline_content(raw, 1_000))


def decided(*events: FileChange | MemoryWrite, row: GateRow | None = None) -> tuple[list[int], int, int]:
    """Versions of what is to be done, and the numbers of events that are the same and older."""
    found = arrivals(*events)
    sights = {arrival.record.place: sight(arrival) for arrival in found}
    choices = {doc_id: choice_of(contest, sights) for doc_id, contest in contests(found).items()}
    rows = {} if row is None else {found[0].doc_id: row}
    kept = {doc_id: choice for doc_id, choice in choices.items() if choice is not None}
    result = decide_all(kept, rows, VERSIONS)
    return [s.arrival.event.version for s in result.to_do], result.same, result.older


@given(st.permutations([1, 2, 3, 4, 5]))
def test_the_newest_event_of_a_document_wins_in_any_order(versions: list[int]) -> None:
    assert decided(*(change(v) for v in versions)) == ([5], 0, 4)


def test_documents_are_decided_apart() -> None:
    assert decided(change(1), change(2, path="b.md"), change(3)) == ([3, 2], 0, 1)


@pytest.mark.parametrize(
    ("event", "row", "expected"),
    [
        pytest.param(change(2), None, ([2], 0, 0), id="unknown"),
        pytest.param(change(2), gate(1, b"other"), ([2], 0, 0), id="changed"),
        pytest.param(change(2), gate(1, b"text"), ([], 1, 0), id="seen again"),
        pytest.param(change(2), gate(2, b"text"), ([], 1, 0), id="redelivered"),
        pytest.param(change(2), gate(3, b"other"), ([], 0, 1), id="older"),
        pytest.param(change(2), gate(2, b"text", versions="p|c|n|h"), ([2], 0, 0), id="another model"),
        pytest.param(change(2), gate(1, b"", deleted=True), ([2], 0, 0), id="back again"),
        pytest.param(change(2), gate(3, b"", deleted=True), ([], 0, 1), id="deleted since"),
        pytest.param(change(2, None), None, ([2], 0, 0), id="deletion of the unknown"),
        pytest.param(change(2, None), gate(2, b"", deleted=True), ([], 1, 0), id="deletion again"),
    ],
)
def test_the_gate_decides(
    event: FileChange, row: GateRow | None, expected: tuple[list[int], int, int]
) -> None:
    assert decided(event, row=row) == expected


def test_a_sight_of_the_old_bytes_lets_the_write_before_it_through() -> None:
    assert decided(memory(2), change(3, b"old"), row=gate(1, b"old")) == ([2], 1, 0)
    assert decided(memory(2), change(3, b"edited"), row=gate(1, b"old")) == ([3], 0, 1)
    assert decided(memory(2), change(3, None), row=gate(1, b"old")) == ([3], 0, 1)


@pytest.mark.parametrize(
    ("events", "newest", "write_before"),
    [
        ([ended(2), updated(3)], 2, None),
        ([ended(2, "erased"), updated(3)], 2, None),
        ([ended(2), ended(3, "superseded")], 2, None),
        ([change(2, None), updated(3)], 2, None),
        ([ended(2), updated(3), change(4)], 4, 2),
        ([ended(2, "erased"), updated(3), change(4, None)], 2, None),
        ([ended(2), memory(3)], 3, None),
        ([ended(2), change(3), updated(4)], 4, None),
    ],
)
def test_what_has_ended_is_not_saved_by_a_later_word_that_needs_the_file(
    events: list[InputEvent], newest: int, write_before: int | None
) -> None:
    [contest] = contests(arrivals(*events)).values()
    before = contest.write_before
    assert (contest.newest.event.version, before and before.event.version) == (newest, write_before)
    versions = [event.version for event in contest.memories]
    assert versions == sorted(e.version for e in events if not isinstance(e, FileChange))


def test_an_odd_kind_and_a_path_out_of_the_vault_are_poison() -> None:
    records = [record(change(1, kind="renamed")), record(change(2, moved_from="../b.md"))]
    found, poisoned = decode_inputs(records, TOPICS)
    assert (found, [p.error.error_class for p in poisoned]) == ([], ["invalid_fields"] * 2)


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return load_token_counter(EmbedderSettings())


def plan(counter: TokenCounter, raw: bytes, path: str = "notes/a.md", **more: Any) -> Any:
    settings = IndexingSettings(**more)
    versions = IndexVersions.of(counter, "m", settings)
    seen = Seen(document=HOME.document(path), vault_path=path, version=7, event_id="e7")
    content = FileContent(head=raw, size=len(raw), content_hash=content_hash(raw))
    return plan_document(
        seen,
        content,
        counter=counter,
        settings=settings,
        versions=versions,
        indexed_at="2026-11-30T00:00:00Z",
    )


def test_rows_of_a_note(counter: TokenCounter) -> None:
    raw = b"---\ntitle: Crane\naliases: [The Crane]\ntags: [port]\n---\nSee [[Harbour|h]] and [x](b.md)."
    planned = plan(counter, raw)
    row = planned.row
    assert (row.title, row.alias_keys, row.tags, row.name_key) == ("Crane", ["the crane"], ["port"], "a")
    assert (row.content_hash, row.size, row.left_out_bytes) == (content_hash(raw), len(raw), 0)
    assert row.body == "See [[Harbour|h]] and [x](b.md)."
    doc_id = HOME.document("notes/a.md").doc_id
    assert {i: (link.target, link.to_doc_id, link.resolved) for i, link in planned.links.items()} == {
        link_id(doc_id, 7, "harbour.md", "wikilink"): ("Harbour", None, False),
        link_id(doc_id, 7, "b.md", "reference"): ("b.md", None, False),
    }
    [chunk] = planned.chunks
    assert planned.text[chunk.start : chunk.end] == "See [[Harbour|h]] and [x](b.md)."
    assert chunk_id(doc_id, chunk.ordinal) != chunk_id(doc_id, 1)


def test_facts_of_a_memory(counter: TokenCounter) -> None:
    raw = b"---\ntype: memory\nsession: s\nposition: 0\nsuperseded_by: b\n---\nmake test\n"
    row = plan(counter, raw).row
    assert (row.health, row.health_reasons) == (0.1, ["short:-0.4", "transient:-0.35", "untagged:-0.15"])
    assert (row.session, row.position, row.turn) == ("s", 0, "s#0")
    assert (row.superseded_by, row.warnings) == (HOME.document("b.md").doc_id, [])


@pytest.mark.parametrize(
    ("front", "superseded_by", "turn", "warnings"),
    [
        ("superseded_by: notes/a", None, None, ["superseded_by_itself"]),
        (f"superseded_by: {HOME.document('notes/a.md').doc_id}", None, None, ["superseded_by_itself"]),
        (f"superseded_by: {DOC_B}", DOC_B, None, []),
        ("superseded_by: '[[Ops/B.md]]'", HOME.document("Ops/B.md").doc_id, None, []),
        ("position: 3", None, None, []),
        ("session: s", None, None, []),
        ("session: s\nposition: -1", None, None, ["frontmatter_invalid_position"]),
    ],
)
def test_places_and_what_supersedes(
    counter: TokenCounter, front: str, superseded_by: str | None, turn: str | None, warnings: list[str]
) -> None:
    row = plan(counter, f"---\n{front}\n---\nwords".encode()).row
    assert (row.superseded_by, row.turn, row.warnings) == (superseded_by, turn, warnings)


def test_a_pattern_that_takes_too_long_is_a_warning(counter: TokenCounter) -> None:
    slow = PatternsRule(penalty=0.3, patterns=(r"(a|aa)+$",), doc_types=("note",))
    row = plan(counter, b"a" * 5_000 + b"b", health=HealthSettings(transient=slow)).row
    assert (row.health, row.health_reasons, row.warnings) == (1.0, [], ["health_pattern_took_too_long"])


def test_other_health_rules_are_another_version_of_the_index(counter: TokenCounter) -> None:
    settings = IndexingSettings(), IndexingSettings(health=HealthSettings(floor=0.2))
    first, second = (IndexVersions.of(counter, "m", one).fingerprint for one in settings)
    assert first != second


@pytest.mark.parametrize(
    ("raw", "reason", "title"),
    [
        pytest.param(b"", "empty", "a", id="zero bytes"),
        pytest.param(b" \n\t\n", "empty", "a", id="blank"),
        pytest.param(b"---\ntitle: Lantern\n---\n", "empty", "Lantern", id="frontmatter only"),
        pytest.param(b"\x00\x01\x02", "not_text", "a", id="no text"),
        pytest.param(b"words", None, "a", id="text"),
    ],
)
def test_c06_what_has_no_vector_says_why(
    counter: TokenCounter, raw: bytes, reason: str | None, title: str
) -> None:
    row = plan(counter, raw).row
    assert (row.no_vector_reason, row.title) == (reason, title)


def test_a_file_that_is_all_headings_fits_into_one_event(counter: TokenCounter) -> None:
    raw = b"".join(f"# heading {n}\n\nx\n\n".encode() for n in range(6_000))
    planned = plan(counter, raw)
    assert planned.row.warnings == ["chunks_left_out"]
    assert 0 < len(planned.chunks) < 6_000


def test_a_deletion_keeps_no_text_and_its_word_says_where_the_file_went(counter: TokenCounter) -> None:
    settings = IndexingSettings()
    planner = Planner(counter=counter, settings=settings, versions=IndexVersions.of(counter, "m", settings))
    [arrival] = arrivals(change(9, None, moved_to="b.md"))
    former = gate(1, b"old")
    work = planner.work(sight(arrival), former, "a.md", NOW)
    assert (work.row.title, work.row.body, work.row.tombstone_until) == (
        "",
        None,
        "2027-01-14T00:00:00.000+00:00",
    )
    word = announcement(work, 1_000)
    assert (word.kind, word.chunks, word.text, word.facts) == ("deleted", [], None, DocumentFacts())
    assert word.moved_to == HOME.document("b.md").doc_id
    assert [write.action for write in row_writes(work)] == ["index"]
    written = gate_write(work, VERSIONS).row
    assert isinstance(written, GateRow)
    assert (written.deleted, written.version, written.content_hash) == (True, 9, "")


def test_a_text_over_the_inline_limit_travels_by_reference(counter: TokenCounter) -> None:
    settings = IndexingSettings()
    planner = Planner(counter=counter, settings=settings, versions=IndexVersions.of(counter, "m", settings))
    [arrival] = arrivals(change(9, "글".encode() * 100))
    work = planner.work(sight(arrival), None, "a.md", NOW)
    assert announcement(work, 300).text == "글" * 100
    assert announcement(work, 300).facts == facts_of(work.row) == DocumentFacts()
    assert announcement(work, 299).text is None
    assert len(announcement(work, 299).chunks) == 1
