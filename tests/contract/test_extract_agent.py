"""The extract agent over the real broker, node and model: whose mentions, of which version, how often."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from indexers.control import LabelsConflict, StoredLabels, change_labels, labels_id, read_labels
from indexers.domain.entities.labels import DEFAULT_LABELS, EntityLabel, NamespaceLabels, PatternRule
from indexers.domain.identity import EntityNamespace, Principal
from indexers.errors import RefusedInput
from indexers.extracted import Progress, extraction_progress
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import ControlRow, Index, owner_fields
from indexers.ports import ModelCall, Span
from streams.agents.extract import ask_for_outdated, handler
from streams.batch import Record
from streams.events import MentionsExtracted
from streams.extract_requests import request_extraction
from tests.agents import Rig, agent_config, opened_rig, reopened, vault_root
from tests.conftest import Stack
from tests.contract.extractor_suite import flat
from tests.handlers import RenamedModel, shipped_extractor
from tests.labelled import AGENT_MEMORY, apart_from, labels_of, micro_f1, read_labelled, stored_places

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

MODEL = shipped_extractor().model_id
OWNERS = "Alice Novak leads the payments team.\n"
SERVICE = "The payments team owns the billing service, which failed in INC-2041.\n"
#: One a test: what another test leaves is another tenant's.
TENANTS = [f"tenant-{number}" for number in range(20)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    folder = tmp_path_factory.mktemp("extract")
    roots = [vault_root(folder, tenant, tenant=tenant) for tenant in TENANTS]
    config = agent_config(stack, f"t{uuid.uuid4().hex[:12]}", roots, inline_max_bytes=1_024)
    async with opened_rig(config) as opened:
        yield opened


@pytest.fixture(scope="module")
def tenants() -> Iterator[str]:
    return iter(TENANTS)


@pytest_asyncio.fixture(loop_scope="module")
async def rig(world: Rig, tenants: Iterator[str]) -> Rig:
    tenant = next(tenants)
    roots = tuple(root for root in world.config.roots if root.tenant == tenant)
    mine = replace(world, config=replace(world.config, roots=roots), inbox=[])
    topics = mine.config.topics
    for topic in (topics.documents, topics.mentions, topics.extract_requests):
        await mine.arrived(topic)
    return mine


def shared(rig: Rig) -> EntityNamespace:
    return EntityNamespace.of(rig.home)


def found(events: Sequence[MentionsExtracted]) -> set[tuple[str, str, str]]:
    """(path, label, surface)."""
    return {(e.path, e.label, m.surface) for e in events for m in e.mentions}


def windows(rig: Rig) -> float:
    """Calls of the model so far."""
    value = rig.extract.context.metrics.registry.get_sample_value("hopline_stream_model_windows_count")
    return value or 0.0


async def extractions(rig: Rig) -> dict[str, tuple[int, str, int]]:
    """By document: version, fingerprint, mentions."""
    rows = await rig.rows(Index.EXTRACTIONS)
    return {i: (row["version"], row["fingerprint"], row["mentions"]) for i, row in rows.items()}


async def fed(rig: Rig, *records: Record) -> list[Record]:
    """What ingest tells the extract agent of these files."""
    await rig.feed(*records)
    return await rig.announced()


async def labels_now(rig: Rig) -> StoredLabels:
    return (await read_labels(rig.gate, [shared(rig)]))[shared(rig)]


async def change(rig: Rig, *names: str, patterns: tuple[PatternRule, ...] = ()) -> StoredLabels:
    wanted = NamespaceLabels(labels=tuple(EntityLabel(name=name) for name in names), patterns=patterns)
    return await change_labels(
        rig.gate, await labels_now(rig), wanted, settled=False, by="ada", at="2026-11-30T00:00:00Z"
    )


async def progress(rig: Rig) -> Progress:
    await rig.gate.refresh(Index.EXTRACTIONS, Index.DOCUMENTS)
    return await extraction_progress(rig.gate, shared(rig), MODEL)


async def test_a_word_that_the_model_cannot_be_shown_is_counted_and_its_neighbours_are_read(rig: Rig) -> None:
    def skipped() -> float:
        registry = rig.extract.context.metrics.registry
        return registry.get_sample_value("hopline_stream_skipped_words_total") or 0.0

    before = skipped()
    blob = "".join(chr(0x4E00 + number) for number in range(1_500))
    told = await fed(rig, rig.saved("blob.md", f"{OWNERS}\n{blob}\n\n{SERVICE}"))
    await rig.extract_records(told)
    events = found(await rig.mentions_told())
    assert {surface for _, _, surface in events} >= {"Alice Novak", "INC-2041"}
    assert skipped() - before == 1


async def test_a_note_is_found_first_and_its_entities_follow(rig: Rig) -> None:
    told = await fed(rig, rig.saved("owners.md", OWNERS), rig.saved("empty.md", "---\ntags: [a]\n---\n"))
    assert await rig.found("Alice") == ["owners.md"]
    assert await rig.mentions_told() == []

    await rig.extract_records(told)
    events = await rig.mentions_told()
    assert found(events) == {("owners.md", "person", "Alice Novak"), ("owners.md", "team", "payments team")}
    names = DEFAULT_LABELS.names
    assert sorted((e.path, e.label) for e in events) == sorted(
        (path, name) for path in ("owners.md", "empty.md") for name in names
    )
    [alice] = [m for e in events for m in e.mentions if e.label == "person"]
    assert (alice.start, alice.end, alice.sentence, alice.source) == (0, 11, OWNERS.strip(), "model")
    versions = {path: row["version"] for path, row in (await rig.documents()).items()}
    ids = {path: rig.home.document(path).doc_id for path in versions}
    print_of = DEFAULT_LABELS.fingerprint(MODEL)
    assert {e.doc_id: e.version for e in events} == {ids[path]: versions[path] for path in ids}
    assert await extractions(rig) == {
        ids["owners.md"]: (versions["owners.md"], print_of, 2),
        ids["empty.md"]: (versions["empty.md"], print_of, 0),
    }
    assert await progress(rig) == Progress(done=2, total=2)


async def test_the_stored_mentions_are_those_of_direct_calls_of_the_model(rig: Rig) -> None:
    """Must show 2 of the entities' issue, over the broker and the node; `bench.extract_quality` for all."""
    texts = {f"t{number:02}.md": text for number, text in enumerate(read_labelled(AGENT_MEMORY)[:12])}
    asked = labels_of(texts.values())
    names = {prompt.replace(" ", "_"): prompt for prompt in asked}
    wanted = NamespaceLabels(labels=tuple(EntityLabel(name=n, prompt=p) for n, p in names.items()))
    await change_labels(
        rig.gate, await labels_now(rig), wanted, settled=False, by="ada", at="2026-11-30T00:00:00Z"
    )
    filler = "Nothing much happened there, and everybody went home at a good hour after a quiet day of work. "
    last = "Alice Novak moved to Berlin."
    long = rig.saved("long.md", filler * 170 + last)
    told = await fed(rig, *(rig.saved(path, text.text) for path, text in texts.items()), long)
    await rig.extract_records(told)
    await rig.link_all()
    stored = stored_places((await rig.rows(Index.MENTIONS)).values())

    pairs = []
    for path, text in texts.items():
        by_rule = stored.get((path, "pattern"), set())
        [spans] = shipped_extractor().extract([text.text], asked, threshold=0.5)
        direct = {(span.start, span.end, span.label) for span in flat(spans)}
        ours = {(start, end, names[label]) for start, end, label in stored.get((path, "model"), set())}
        pairs.append([apart_from(places, by_rule) for places in (text.names, direct, ours)])
    f1 = [micro_f1((expected, row[side]) for expected, *row in pairs) for side in (0, 1)]
    assert f1[1] == f1[0] > 60
    at = len(filler) * 170
    assert len((filler * 170).split()) > 3_000
    assert {(at, at + 11, "person"), (at + 21, at + 27, "location")} <= stored["long.md", "model"]


async def test_c08_the_same_event_three_times_is_told_of_once(rig: Rig) -> None:
    told = await fed(rig, rig.saved("owners.md", OWNERS))
    await rig.extract_records([told[0], told[0], told[0]])
    first, rows, calls = await rig.mentions_told(), await extractions(rig), windows(rig)
    assert len(first) == len(DEFAULT_LABELS.names)
    await rig.extract_records(told)
    await rig.extract_records(told)
    assert (await rig.mentions_told(), await extractions(rig), windows(rig)) == ([], rows, calls)

    # Killed after the events and before the row: told of again, in the same words.
    [version] = [version for version, *_ in rows.values()]
    await rig.gate.write([removal(rig, version)])
    await rig.extract_records(told)
    again = await rig.mentions_told()
    assert plain(again) == plain(first)
    assert await extractions(rig) == rows


async def test_labels_that_change_are_looked_for_in_every_document_and_the_old_ones_vanish(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "PAGE_DOCUMENTS", 2)
    notes = [rig.saved(f"n{number}.md", f"{OWNERS}Berth B-{number}7 is free.\n") for number in range(5)]
    await rig.extract_records(await fed(rig, *notes))
    await rig.mentions_told()

    berth = PatternRule(label="berth", pattern=r"\bB-\d\d\b")
    stored = await change(rig, "person", patterns=(berth,))
    assert (stored.labels.version, "team" in stored.labels.retired) == (1, True)
    assert await progress(rig) == Progress(done=0, total=5, outdated=5)
    await request_extraction(rig.extract.context.producer, rig.config.topics, shared(rig), reason="test")
    assert await rig.extract_asked() == 3
    events = await rig.mentions_told()
    assert found(events) == {(f"n{n}.md", "person", "Alice Novak") for n in range(5)} | {
        (f"n{n}.md", "berth", f"B-{n}7") for n in range(5)
    }
    assert {e.path for e in events if e.label == "team"} == {f"n{n}.md" for n in range(5)}
    assert await progress(rig) == Progress(done=5, total=5)

    # Nothing is left to do, so nothing is done; unless all is asked for.
    calls = windows(rig)
    await request_extraction(rig.extract.context.producer, rig.config.topics, shared(rig), reason="test")
    assert (await rig.extract_asked(), await rig.mentions_told(), windows(rig)) == (1, [], calls)
    await request_extraction(
        rig.extract.context.producer, rig.config.topics, shared(rig), reason="test", whole=True
    )
    assert (await rig.extract_asked(), windows(rig) > calls) == (3, True)
    assert found(await rig.mentions_told()) == found(events)


async def test_labels_that_change_while_the_model_runs_are_noticed(rig: Rig) -> None:
    told = await fed(rig, rig.saved("owners.md", OWNERS))
    prepared = await rig.extract.prepare(told)
    await change(rig, "person")
    await rig.extract.commit(prepared)
    assert await progress(rig) == Progress(done=0, total=1, outdated=1)
    assert await rig.extract_asked() == 1
    assert await progress(rig) == Progress(done=1, total=1)
    last = {event.label: found([event]) for event in await rig.mentions_told()}
    assert (last["person"], last["team"]) == ({("owners.md", "person", "Alice Novak")}, set())


async def test_of_two_who_change_the_labels_at_once_one_is_told(rig: Rig) -> None:
    before = await labels_now(rig)
    await change(rig, "person")
    with pytest.raises(LabelsConflict, match="changed meanwhile by ada"):
        await change_labels(rig.gate, before, DEFAULT_LABELS, settled=False, by="ben", at="2026-11-30")
    now = await labels_now(rig)
    assert await change_labels(
        rig.gate, now, DEFAULT_LABELS, settled=False, by="ben", at="2026-11-30"
    ) == await labels_now(rig)
    with pytest.raises(ValueError, match="regular expression"):
        await change(rig, "person", patterns=(PatternRule(label="a", pattern="("),))


async def test_a_document_that_goes_is_told_of_under_every_label(rig: Rig) -> None:
    await rig.extract_records(await fed(rig, rig.saved("owners.md", OWNERS)))
    await change(rig, "person")
    await rig.mentions_told()
    gone = await fed(rig, rig.removed("owners.md"))
    await rig.extract_records(gone)
    events = await rig.mentions_told()
    names = (await labels_now(rig)).labels.names
    assert {(e.kind, e.label, len(e.mentions)) for e in events} == {("deleted", name, 0) for name in names}
    assert set(DEFAULT_LABELS.names) <= set(names)
    assert await extractions(rig) == {}


async def test_a_document_that_changes_or_goes_while_the_model_runs(rig: Rig) -> None:
    old = await fed(rig, rig.saved("owners.md", OWNERS), rig.saved("gone.md", SERVICE))
    prepared = await rig.extract.prepare(old)
    new = await fed(rig, rig.saved("owners.md", "Ben Okafor leads it now.\n"), rig.removed("gone.md"))
    [end] = [r for r in new if b'"kind":"deleted"' in (r.value or b"")]
    await rig.extract_records([end])
    await rig.mentions_told()

    await rig.extract.commit(prepared)
    assert await extractions(rig) == {}
    last = {(e.path, e.label): e.kind for e in await rig.mentions_told()}
    assert {kind for (path, _), kind in last.items() if path == "gone.md"} == {"deleted"}
    await rig.extract_records(old)
    assert await rig.mentions_told() == []
    await rig.extract_records(new)
    assert ("owners.md", "person", "Ben Okafor") in found(await rig.mentions_told())
    assert list(await extractions(rig)) == [rig.home.document("owners.md").doc_id]


async def test_poison_between_good_records_costs_nobody_else(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    config = agent_config(stack, prefix, [vault_root(tmp_path)])
    async with opened_rig(config, extractor=Refusing("xylophone")) as rig:
        told = await fed(
            rig,
            rig.saved("a.md", OWNERS),
            rig.saved("odd.md", "A xylophone plays.\n"),
            rig.saved("b.md", OWNERS),
        )
        broken = replace(told[0], value=b"{", offset=told[0].offset + 100)
        foreign = replace(told[0], value=b"[]", topic=config.topics.extract_requests)
        await rig.extract_records([told[0], broken, *told[1:], foreign])
        assert {event.path for event in await rig.mentions_told()} == {"a.md", "b.md"}
        assert len(await extractions(rig)) == 2
        letters = sorted((letter.agent, letter.error_class) for letter in await rig.letters())
        assert letters == [
            ("extract", "invalid_fields"),
            ("extract", "not_extractable"),
            ("extract", "not_json"),
        ]


async def test_a_long_text_is_read_from_the_vault_and_only_as_it_was_indexed(rig: Rig) -> None:
    filler = "The weather was mild and nothing else happened on that day at all. " * 60
    told = await fed(rig, rig.saved("long.md", f"{filler}\n\n{SERVICE}"), rig.saved("other.md", filler))
    (rig.root.path / "other.md").write_text("changed since", encoding="utf-8")
    assert all(b'"text":null' in (record.value or b"") for record in told)
    await rig.extract_records(told)
    surfaces = {surface for _, _, surface in found(await rig.mentions_told())}
    assert {"INC-2041", "payments team"} <= surfaces
    assert list(await extractions(rig)) == [rig.home.document("long.md").doc_id]


async def test_a_new_model_asks_for_what_the_old_one_did(rig: Rig) -> None:
    await rig.extract_records(await fed(rig, rig.saved("owners.md", OWNERS)))
    await fed(rig, rig.saved("service.md", SERVICE))
    await rig.gate.refresh(Index.DOCUMENTS, Index.EXTRACTIONS)
    async with reopened(rig, rig.config, extractor=renamed("other-model")) as later:
        await ask_for_outdated(later.gate, later.extract.context, later.config.roots, "other-model")
        assert await later.extract_asked() == 1
        fingerprints = {row[1] for row in (await extractions(later)).values()}
        assert fingerprints == {DEFAULT_LABELS.fingerprint("other-model")}
        assert len(await extractions(later)) == 2
        await later.gate.refresh(Index.EXTRACTIONS)
        await ask_for_outdated(later.gate, later.extract.context, later.config.roots, "other-model")
        assert await later.extract_asked() == 0


async def test_stored_labels_that_cannot_be_read_take_no_mention_away(rig: Rig) -> None:
    told = await fed(rig, rig.saved("owners.md", OWNERS))
    row = ControlRow(
        **owner_fields(shared(rig).namespace),
        kind="labels",
        name="shared",
        value={"labels": [{"name": "a", "colour": "red"}]},
        version=1,
        updated_by="ada",
        updated_at="2026-11-30T00:00:00Z",
    )
    principal = Principal.pipeline(rig.home.tenant_id)
    row_id = labels_id(shared(rig))
    await rig.gate.write(
        [RowWrite(principal=principal, index=Index.CONTROL, row_id=row_id, action="create", row=row)]
    )
    await request_extraction(rig.extract.context.producer, rig.config.topics, shared(rig), reason="test")
    await rig.extract_records(told)
    assert await rig.extract_asked() == 1
    assert (await rig.mentions_told(), await extractions(rig)) == ([], {})
    mine = [letter for letter in await rig.letters() if letter.tenant_id == rig.home.tenant_id]
    assert [letter.error_class for letter in mine] == ["invalid_labels"] * 2


def plain(events: Sequence[MentionsExtracted]) -> dict[str, dict[str, Any]]:
    """By label, all but who sent it when."""
    sent = ("event_id", "occurred_at")
    return {e.label: {n: getattr(e, n) for n in e.__struct_fields__ if n not in sent} for e in events}


def removal(rig: Rig, version: int) -> RowWrite:
    return RowWrite(
        principal=rig.home.principal,
        index=Index.EXTRACTIONS,
        row_id=rig.home.document("owners.md").doc_id,
        action="delete",
        version=version,
    )


def renamed(model_id: str) -> Any:
    return RenamedModel(shipped_extractor(), model_id)


class Refusing:
    """The shipped model, but that it refuses a word, as it does a window that is too long."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __getattr__(self, name: str) -> Any:
        return getattr(shipped_extractor(), name)

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        for call in calls:
            if any(self._word in window for window in call.windows):
                raise RefusedInput("too long")
            yield from shipped_extractor().extract_each([call])
