"""Relations that agents state: kept in the vault, shown while the cited document says so."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import unicodedata
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaConsumer, TopicPartition

from indexers.domain.entities.relations import Statement
from indexers.domain.identity import EntityNamespace, Principal, relation_id
from indexers.linking.unlinked import Naming
from indexers.linking.unlinked_texts import VaultTexts
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index, RelationRow
from indexers.settings import VaultRoot
from streams.batch import Record
from streams.clearing import clear_namespace
from streams.events import RelationWritten, decode, encode
from streams.memory import memory_write
from streams.relations import relation_written
from streams.settings import AgentSettings
from tests.agents import Rig, agent_config, opened_rig, reopened, vault_root
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

QUOTE = "Alice Novak leads the payments team"
TEXT = f"# Teams\n\n{QUOTE}.\nThe payments team\nowns payout-ledger.\n"
LEADS = ("Alice Novak", "leads", "payments team")
OWNS = ("payments team", "owns", "payout-ledger")
#: Above the clock's.
LATER = 1 << 60


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """Two tenants' vaults; each test has notes of its own."""
    folder: Path = tmp_path_factory.mktemp("relations")
    roots = [vault_root(folder), vault_root(folder, "theirs", tenant="zeta", agent="zoe")]
    config = agent_config(stack, f"t{folder.name}-{id(folder):x}", roots)
    async with opened_rig(replace(config, agent=AgentSettings(vault_patience_seconds=5))) as opened:
        yield opened


def stated(
    rig: Rig,
    path: str,
    quote: str,
    words: tuple[str, str, str] = LEADS,
    *,
    root: VaultRoot | None = None,
    **more: Any,
) -> Record:
    subject, relation_type, other = words
    labels = {"leads": ("person", "team"), "owns": ("team", "service")}[relation_type]
    event = relation_written(
        (root or rig.root).namespace,
        path,
        version=rig.clock.next(),
        subject=subject,
        subject_label=labels[0],
        relation_type=relation_type,
        object=other,
        object_label=labels[1],
        quote=quote,
        **more,
    )
    return rig.record(encode(event), topic=rig.config.topics.memory_writes)


def journal(rig: Rig, root: VaultRoot | None = None) -> list[Statement]:
    file = (root or rig.root).path / ".hopline/relations.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Statement) for line in lines]


async def said(rig: Rig, folder: str, tenant: str | None = None) -> dict[str, set[tuple[str, str, str]]]:
    """Path → relations of it, of the documents in the folder; each in its document's version."""
    documents = {row["doc_id"]: row for row in (await rig.rows(Index.DOCUMENTS, tenant)).values()}
    found: dict[str, set[tuple[str, str, str]]] = {}
    for row in (await rig.rows(Index.RELATIONS, tenant)).values():
        if row["path"].startswith(folder):
            assert row["version"] == documents[row["doc_id"]]["version"]
            found.setdefault(row["path"], set()).add((row["subject"], row["relation_type"], row["object"]))
    return found


async def reasons(rig: Rig, *records: Record) -> list[str]:
    """Error classes of their dead letters."""
    offsets = {record.offset for record in records}
    return [letter.error_class for letter in await rig.letters() if letter.offset in offsets]


async def test_a_relation_is_a_row_with_the_place_that_says_so(rig: Rig) -> None:
    await rig.feed(rig.saved("row/teams.md", TEXT))
    record = stated(rig, "row/teams.md", "the  payments\tteam owns payout-ledger".replace("the", "The"), OWNS)
    await rig.feed(record, record)
    event = msgspec.json.decode(record.value or b"", type=RelationWritten)
    assert [one.event_id for one in journal(rig)].count(event.event_id) == 1
    doc, owner = rig.home.document("row/teams.md"), EntityNamespace.of(rig.home)
    subject, other = owner.name_id("team", "payments team"), owner.name_id("service", "payout ledger")
    [version] = [
        row["version"] for row in (await rig.rows(Index.DOCUMENTS)).values() if row["path"] == doc.path
    ]
    assert (await rig.rows(Index.RELATIONS))[relation_id(doc.doc_id, subject, "owns", other)] == {
        "tenant_id": "acme",
        "agent_id": "ada",
        "team_id": None,
        "scope": rig.home.scope.value,
        "doc_id": doc.doc_id,
        "path": "row/teams.md",
        "namespace": owner.owner,
        "subject": "payments team",
        "subject_label": "team",
        "subject_id": subject,
        "relation_type": "owns",
        "object": "payout-ledger",
        "object_label": "service",
        "object_id": other,
        "quote": "The payments team\nowns payout-ledger",
        "start": TEXT.index("The payments"),
        "end": TEXT.index("ledger.") + len("ledger"),
        "version": version,
    }
    again = stated(rig, "row/teams.md", QUOTE)
    # A memory written and cited in one batch, in Korean and decomposed.
    write = memory_write(rig.home, "결제팀은 정산 서비스를 소유한다.", version=rig.clock.next(), title="소유")
    korean = stated(
        rig, write.path, unicodedata.normalize("NFD", "결제팀은 정산"), ("결제팀", "owns", "정산 서비스")
    )
    await rig.feed(again, rig.written(write), korean)
    assert await said(rig, "row/") == {"row/teams.md": {LEADS, OWNS}}
    assert await said(rig, write.path) == {write.path: {("결제팀", "owns", "정산 서비스")}}
    assert await reasons(rig, record, again, korean) == []


async def test_what_no_document_says_is_refused_and_not_kept(rig: Rig) -> None:
    await rig.feed(rig.saved("no/teams.md", TEXT))
    good = msgspec.json.decode(stated(rig, "no/teams.md", QUOTE).value or b"", type=RelationWritten)

    def spoiled(**fields: Any) -> Record:
        value = encode(msgspec.structs.replace(good, **fields))
        return rig.record(value, topic=rig.config.topics.memory_writes)

    before = journal(rig)
    records = [
        stated(rig, "no/teams.md", QUOTE.upper()),
        stated(rig, "no/nobody.md", QUOTE),
        spoiled(kind="perhaps"),
        spoiled(subject="“…”"),
        spoiled(object_label="a team"),
        spoiled(relation_type="Is the leader of"),
        spoiled(quote=" "),
    ]
    await rig.feed(*records)
    assert await reasons(rig, *records) == ["quote_missing", "no_such_document", *["invalid_fields"] * 5]
    assert (journal(rig), await said(rig, "no/")) == (before, {})


async def test_an_edit_takes_a_relation_away_and_brings_it_back(rig: Rig) -> None:
    record = stated(rig, "edit/teams.md", QUOTE)
    await rig.feed(rig.saved("edit/teams.md", TEXT), record, stated(rig, "edit/teams.md", "team owns", OWNS))
    await rig.feed(rig.saved("edit/teams.md", "# Teams\n\nThe payments team owns payout-ledger."))
    assert await said(rig, "edit/") == {"edit/teams.md": {OWNS}}
    # Accepted once, it is not refused when it comes again.
    await rig.feed(record)
    assert await reasons(rig, record) == []
    await rig.feed(rig.saved("edit/teams.md", "Since May " + TEXT))
    assert await said(rig, "edit/") == {"edit/teams.md": {LEADS, OWNS}}
    await rig.feed(rig.removed("edit/teams.md"))
    assert await said(rig, "edit/") == {}
    await rig.feed(rig.saved("edit/teams.md", TEXT))
    back = stated(rig, "edit/teams.md", "", ("ALICE NOVAK", "leads", "the payments team"), kind="unrelated")
    await rig.feed(back)
    await rig.feed(record)
    assert await said(rig, "edit/") == {"edit/teams.md": {OWNS}}


async def test_a_moved_document_takes_its_relations_along(rig: Rig) -> None:
    await rig.feed(rig.saved("move/a.md", TEXT))
    await rig.feed(stated(rig, "move/a.md", QUOTE))
    there = rig.moved("move/a.md", "move/b.md", TEXT)
    # An edit right behind it, which doesn't tell of the move.
    await rig.feed(*there, rig.saved("move/b.md", TEXT + "More."))
    assert await said(rig, "move/") == {"move/b.md": {LEADS}}
    await rig.feed(*reversed(there))
    await rig.feed(*rig.moved("move/b.md", "move/a.md", TEXT))
    await rig.feed(*rig.moved("move/a.md", "move/b.md", TEXT))
    assert await said(rig, "move/") == {"move/b.md": {LEADS}}
    assert [one.path for one in journal(rig) if one.path.startswith("move/")] == ["move/a.md", "move/b.md"]


async def test_tenants_know_nothing_of_each_other(rig: Rig) -> None:
    theirs = rig.config.roots[1]
    await rig.feed(rig.saved("two/teams.md", TEXT), rig.saved("two/teams.md", TEXT, root=theirs))
    await rig.feed(stated(rig, "two/teams.md", QUOTE, root=theirs))
    # The other's journal copied into this vault says nothing here.
    (rig.root.path / ".hopline").mkdir(exist_ok=True)
    with (rig.root.path / ".hopline/relations.jsonl").open("ab") as file:
        file.write((theirs.path / ".hopline/relations.jsonl").read_bytes())
    await rig.feed(rig.saved("two/teams.md", TEXT + "More."))
    assert await said(rig, "two/") == {}
    assert await said(rig, "two/", "zeta") == {"two/teams.md": {LEADS}}


async def test_a_crash_behind_the_journal_is_made_good(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        """Stands for the end of the process."""

    async def killed(_gate: Gate, _writes: Any) -> Any:
        raise Killed

    record = stated(rig, "crash/teams.md", QUOTE)
    await rig.feed(rig.saved("crash/teams.md", TEXT))
    with monkeypatch.context() as patch:
        patch.setattr(Gate, "write", killed)
        with pytest.raises(Killed):
            await rig.feed(record)
    assert await said(rig, "crash/") == {}
    async with reopened(rig, rig.config) as other:
        await other.feed(record)
    assert await said(rig, "crash/") == {"crash/teams.md": {LEADS}}
    # The first worker sees what the other one wrote down.
    async with reopened(rig, rig.config) as other:
        await other.feed(stated(rig, "crash/teams.md", "team owns", OWNS))
    await rig.feed(rig.saved("crash/teams.md", TEXT + "More."))
    assert await said(rig, "crash/") == {"crash/teams.md": {LEADS, OWNS}}


async def test_a_vault_that_is_away_is_awaited_by_statements_alone(rig: Rig) -> None:
    await rig.feed(rig.saved("away/a.md", TEXT), stated(rig, "away/a.md", QUOTE))
    away = rig.root.path.with_name("away")
    rig.root.path.rename(away)
    await asyncio.wait_for(rig.feed(rig.told("away/b.md", TEXT.encode())), 3)
    feeding = asyncio.create_task(rig.feed(stated(rig, "away/a.md", "team owns", OWNS)))
    await asyncio.sleep(0.3)
    assert not feeding.done()
    away.rename(rig.root.path)
    await feeding
    assert await said(rig, "away/") == {"away/a.md": {LEADS, OWNS}}


async def test_the_commands_state_and_take_back(rig: Rig) -> None:
    (rig.root.path / "command.md").write_text(TEXT, encoding="utf-8")
    roots = [{"name": rig.root.name, "path": str(rig.root.path), "tenant": "acme", "agent": "ada"}]
    env = os.environ | {
        "HOPLINE_PREFIX": rig.config.prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": rig.config.kafka_servers,
        "HOPLINE_VAULTS": json.dumps(roots),
    }
    words = ["command.md", *LEADS, "--subject-label", "person", "--object-label", "team", "--json"]

    async def hopline(*arguments: str) -> tuple[int | None, dict[str, str]]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hopline", *arguments, env=env, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
        return process.returncode, json.loads(out or err)

    code, wrong = await hopline("relate", *words, "--quote", QUOTE.lower())
    assert (code, list(wrong)) == (2, ["error"])
    code, stated_by = await hopline("relate", *words, "--quote", QUOTE, "--by", "bob")
    assert (code, stated_by["kind"]) == (0, "related")
    code, taken_back = await hopline("unrelate", *words)
    assert (code, taken_back["kind"]) == (0, "unrelated")
    events = [decode(value, RelationWritten) for value in await sent(rig)]
    assert [(e.event_id, e.kind, e.path, e.quote, e.by) for e in events] == [
        (stated_by["event_id"], "related", "command.md", QUOTE, "bob"),
        (taken_back["event_id"], "unrelated", "command.md", "", "ada"),
    ]


async def sent(rig: Rig) -> list[bytes | None]:
    """All records of the memory-writes topic, those of one document in order."""
    consumer = AIOKafkaConsumer(bootstrap_servers=rig.config.kafka_servers)
    await consumer.start()
    try:
        topic = rig.config.topics.memory_writes
        parts = [TopicPartition(topic, p) for p in range(rig.config.kafka.partitions)]
        consumer.assign(parts)
        await consumer.seek_to_beginning(*parts)
        left = sum((await consumer.end_offsets(parts)).values())
        values: list[bytes | None] = []
        while len(values) < left:
            for messages in (await consumer.getmany(timeout_ms=2_000)).values():
                values += [message.value for message in messages]
        return values
    finally:
        await consumer.stop()


async def test_verify_finds_each_fault_and_a_rebuild_brings_all_back(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as rig:
        await rig.index(rig.saved("a.md", TEXT), rig.saved("b.md", "Nothing of the kind."))
        await rig.feed(stated(rig, "a.md", QUOTE), stated(rig, "a.md", "team owns", OWNS))
        rows = await rig.rows(Index.RELATIONS)
        report = await rig.verify()
        assert (report.counts, report.relations) == ({}, 2)
        texts = VaultTexts(read_file=lambda _key: None, settings=rig.config.indexing)
        await clear_namespace(rig.gate, rig.home, Naming(texts=texts, in_degree_max=8))
        assert await rig.rows(Index.RELATIONS) == {}
        files = [
            rig.told(name, (rig.root.path / name).read_bytes(), origin="rebuild") for name in ("a.md", "b.md")
        ]
        await rig.index(*files)
        again = await rig.rows(Index.RELATIONS)
        assert unversioned(again) == unversioned(rows)
        assert await rig.verified() == {}
        row_id = min(again)
        broken = msgspec.convert(again[row_id], RelationRow)
        await write(rig, row_id, None)
        assert await rig.verified() == {"missing_relation": 1}
        await write(rig, row_id, msgspec.structs.replace(broken, start=broken.start + 1))
        assert await rig.verified() == {"stale_relation": 1}
        await write(rig, row_id, broken)
        await write(rig, "another", broken)
        await write(rig, "foreign", msgspec.structs.replace(broken, doc_id="nowhere"))
        assert await rig.verified() == {"orphan_relation": 2}


def unversioned(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row_id: row | {"version": 0} for row_id, row in rows.items()}


async def write(rig: Rig, row_id: str, row: RelationRow | None) -> None:
    """One row altered behind the agents' back."""
    change = RowWrite(
        principal=Principal.pipeline(rig.home.tenant_id),
        index=Index.RELATIONS,
        row_id=row_id,
        action="delete" if row is None else "index",
        row=row,
        version=rig.clock.next() + LATER,
    )
    [result] = await rig.gate.write([change])
    assert result.status == "applied", result
