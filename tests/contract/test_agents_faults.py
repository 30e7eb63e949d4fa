"""What ingest and embed do when something goes wrong halfway: crashes, refusals, a vault that is away."""

from __future__ import annotations

import asyncio
import errno
import os
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexers.errors import PoisonRecord, Transient
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index, LinkRow
from indexers.vault.tree import VaultTree
from streams.agents.vaults import Vaults
from streams.events import MemoryWrite, new_event_id
from streams.memory import memory_write
from streams.settings import AgentSettings, KafkaSettings
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack

pytestmark = pytest.mark.engines


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as opened:
        yield opened


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


async def dies_before_its_rows(rig: Rig, monkeypatch: pytest.MonkeyPatch, event: MemoryWrite) -> Path:
    """The write is a file already, and nothing of it is in the store."""

    async def killed(_gate: Gate, _writes: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Gate, "write", killed)
        with pytest.raises(Killed):
            await rig.feed(rig.written(event))
    return rig.root.path / event.path


def note(rig: Rig, content: str = "remember the tide") -> MemoryWrite:
    return memory_write(rig.home, content, version=rig.clock.next())


async def test_an_edit_of_a_memory_survives_the_redelivery_of_its_write(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = note(rig)
    file = await dies_before_its_rows(rig, monkeypatch, event)
    assert "tide" in file.read_text()
    edit = "a person's own words"
    file.write_text(edit)
    await rig.index(rig.written(event))
    assert (file.read_text(), await rig.documents(), rig.skipped("older")) == (edit, {}, 1)
    await rig.index(rig.told(event.path, edit.encode()))
    await rig.index(rig.written(event))
    assert (file.read_text(), await rig.found("person")) == (edit, [event.path])
    assert await rig.letters() == []
    assert await rig.verified() == {}


async def test_a_memory_deleted_within_the_crash_is_written_again_unless_its_deletion_is_known(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accepted write is never lost; a deletion that was told of is newer, and wins."""
    first, second = note(rig), note(rig)
    files = [await dies_before_its_rows(rig, monkeypatch, event) for event in (first, second)]
    for file in files:
        file.unlink()
    await rig.index(rig.written(first))
    await rig.index(rig.written(second), rig.removed(second.path))
    assert [file.exists() for file in files] == [True, False]
    assert sorted(await rig.documents()) == [first.path]


async def test_a_second_write_follows_the_first_that_died(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is no edit of a person: both writes come again in one batch."""
    first = note(rig)
    file = await dies_before_its_rows(rig, monkeypatch, first)
    second = msgspec.structs.replace(
        first, event_id=new_event_id(), version=rig.clock.next(), content="remember the ebb"
    )
    await rig.index(rig.written(first), rig.written(second))
    assert "ebb" in file.read_text()
    third = msgspec.structs.replace(
        second, event_id=new_event_id(), version=rig.clock.next(), content="flood"
    )
    await rig.index(rig.written(third))
    assert "flood" in file.read_text()
    assert await rig.found("flood") == [first.path]


Spoil = Callable[[RowWrite], bool]


def spoiled(monkeypatch: pytest.MonkeyPatch, spoil: Spoil) -> None:
    """The rows chosen carry a number that the store can't keep, so that it is the store that refuses them."""
    original = Gate.write

    async def write(gate: Gate, writes: Sequence[RowWrite]) -> Any:
        return await original(gate, [_spoiled(w) if spoil(w) else w for w in writes])

    monkeypatch.setattr(Gate, "write", write)


def _spoiled(write: RowWrite) -> RowWrite:
    row: Any = write.row
    return replace(write, row=msgspec.structs.replace(row, version=2**63))


def edge_to(target: str) -> Spoil:
    return lambda write: isinstance(write.row, LinkRow) and write.row.target == target


async def test_of_a_document_with_a_refused_edge_nothing_old_remains(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections = "# One\n\n[[b]] alpha\n\n# Two\n\n[[c]] bravo"
    await rig.index(rig.saved("a.md", sections), rig.saved("b.md", "bee [[a]]"))
    with monkeypatch.context() as patch:
        spoiled(patch, edge_to("refused"))
        await rig.index(rig.saved("a.md", "# One\n\n[[b]] [[refused]] gamma"))
    assert [letter.error_class for letter in await rig.letters()] == ["rejected_by_store"]
    assert await rig.edges() == {("a.md", "b", "b.md", False), ("b.md", "a", "a.md", False)}
    assert (await rig.found("gamma"), await rig.found("bravo")) == (["a.md"], [])
    assert await rig.chunk_counts() == {"a.md": 1, "b.md": 1}
    # Not done: neither the same bytes nor the former ones are skipped.
    await rig.index(rig.saved("a.md", sections))
    assert await rig.chunk_counts() == {"a.md": 2, "b.md": 1}
    await rig.index(rig.saved("a.md", "# One\n\n[[b]] [[refused]] gamma"))
    assert ("a.md", "refused", None, False) in await rig.edges()
    assert await rig.verified() == {}


async def test_a_document_too_large_to_tell_of_stays_as_it_was(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    config = agent_config(stack, prefix, [vault_root(tmp_path)])
    small = KafkaSettings(**(config.kafka.model_dump() | {"max_message_bytes": 65_536}))
    async with opened_rig(replace(config, kafka=small)) as rig:
        await rig.index(rig.saved("a.md", "alpha [[b]]"), rig.saved("b.md", "bravo"))
        before = [await rig.rows(index) for index in Index]
        headings = "\n\n".join(f"# heading {n}\n\nword [[c]]" for n in range(1_500))
        await rig.index(rig.saved("a.md", headings), rig.saved("c.md", "charlie"))
        assert [letter.error_class for letter in await rig.letters()] == ["event_too_large"]
        after = [await rig.rows(index) for index in Index]
        assert [{i: rows[i] for i in old} for old, rows in zip(before, after, strict=True)] == before
        assert await rig.found("charlie") == ["c.md"]


async def test_a_prepared_batch_of_references_holds_none_of_their_bytes(rig: Rig) -> None:
    for n in range(40):
        (rig.root.path / f"n{n}.md").write_bytes(f"word{n} ".encode() * 60_000)
    records = [rig.told(f"n{n}.md", None) for n in range(40)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        prepared = await rig.ingest.prepare(records)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(prepared.choices) == 40
    assert held < 1_000_000


async def test_a_reference_that_changes_between_the_looks_ends_as_it_is(rig: Rig) -> None:
    (rig.root.path / "a.md").write_text("first")
    prepared = await rig.ingest.prepare([rig.told("a.md", None)])
    last = rig.saved("a.md", "second")
    await rig.ingest.commit(prepared)
    await rig.index(last)
    assert await rig.found("second") == ["a.md"]
    assert await rig.verified() == {}


def waited_for_the_vault(rig: Rig) -> float:
    registry = rig.ingest.context.metrics.registry
    return registry.get_sample_value("hopline_stream_retries_total", {"dependency": "vault"}) or 0.0


def identity(place: Path) -> tuple[int, int, int, int]:
    """What stands at a path, untouched: following a link changes its time of access and nothing else."""
    stat = place.lstat()
    return stat.st_mode, stat.st_ino, stat.st_size, stat.st_mtime_ns


@pytest.mark.parametrize("kind", ["loop", "pipe", "folder", "into a missing folder", "outside"])
async def test_a_memory_at_a_path_of_something_else_costs_itself_at_once(
    rig: Rig, tmp_path: Path, kind: str
) -> None:
    """No file, or a link out of the vault: the record is a dead letter, and its neighbour is indexed."""
    event = note(rig)
    place = rig.root.path / event.path
    place.parent.mkdir(parents=True)
    outside = tmp_path / "outside.md"
    outside.write_text("theirs")
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            targets = {"loop": place, "into a missing folder": place.parent / "missing/x.md"}
            place.symlink_to(targets.get(kind, outside))
    before = identity(place)
    await asyncio.wait_for(rig.index(rig.written(event), rig.saved("a.md", "alpha")), 20)
    assert [(x.agent, x.error_class) for x in await rig.letters()] == [("ingest", "unreadable_reference")]
    assert await rig.found("alpha") == ["a.md"]
    assert waited_for_the_vault(rig) == 0
    assert (identity(place), outside.read_text()) == (before, "theirs")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errno.ELOOP, "unreadable_reference"),
        (errno.ENAMETOOLONG, "unreadable_reference"),
        (errno.EISDIR, "unreadable_reference"),
        (errno.ENOTDIR, "unreadable_reference"),
        (errno.EINVAL, "unreadable_reference"),
        (errno.ENXIO, "unreadable_reference"),
        (errno.EACCES, "unreadable_reference"),
        (errno.ESTALE, None),
        (errno.EIO, None),
        (errno.ENOTCONN, None),
        (errno.ETIMEDOUT, None),
        (errno.ENOSPC, None),
    ],
)
def test_faults_of_a_path_are_not_those_of_its_vault(tmp_path: Path, error: int, kind: str | None) -> None:
    root = vault_root(tmp_path)
    vaults = Vaults(files=VaultTree([root]), patience_seconds=60)
    with (
        pytest.raises(PoisonRecord if kind else Transient) as caught,
        vaults.reach(root.namespace.document("a.md")),
    ):
        raise OSError(error, os.strerror(error))
    assert getattr(caught.value, "error_class", None) == kind


async def test_a_note_of_characters_that_no_file_holds_is_indexed(rig: Rig) -> None:
    await rig.index(
        rig.saved(
            "a.md", '---\ntitle: "a\\ud800"\ntags: ["x\\0"]\nsource: "\\udfff"\n---\nalpha [b](c%00.md)'
        )
    )
    row = (await rig.documents())["a.md"]
    assert (row["title"], row["tags"], row["source"]) == ("a\ufffd", ["x\ufffd"], "\ufffd")
    assert row["warnings"] == ["frontmatter_characters_replaced"]
    assert msgspec.json.decode(msgspec.json.encode(row)) == row
    assert (await rig.letters(), await rig.verified()) == ([], {})


async def test_a_vault_that_stays_away_costs_its_own_records_and_no_neighbour(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    ours, theirs = vault_root(tmp_path), vault_root(tmp_path, "theirs", tenant="umbra")
    config = agent_config(stack, prefix, [ours, theirs], inline_max_bytes=1_024)
    async with opened_rig(replace(config, agent=AgentSettings(vault_patience_seconds=1.5))) as rig:
        long = "word " * 400
        await rig.feed(rig.saved("embedded.md", long, root=theirs))
        away = theirs.path.with_name("away")
        theirs.path.rename(away)
        write = memory_write(theirs.namespace, "remember", version=rig.clock.next())
        lost = [rig.told("b.md", None, root=theirs), rig.written(write)]
        held = asyncio.create_task(rig.index(lost[0], rig.saved("a.md", "alpha")))
        await asyncio.sleep(0.7)
        assert not held.done()
        await asyncio.wait_for(held, 20)
        assert await rig.found("alpha") == ["a.md"]
        # Once known to be away it isn't waited for again.
        waits = waited_for_the_vault(rig)
        await rig.index(lost[1], rig.saved("c.md", "charlie"))
        assert waited_for_the_vault(rig) == waits > 0
        letters = await rig.letters()
        assert sorted((x.agent, x.error_class) for x in letters) == [
            ("embed", "vault_unavailable"),
            ("ingest", "vault_unavailable"),
            ("ingest", "vault_unavailable"),
        ]
        away.rename(theirs.path)
        (theirs.path / "b.md").write_text("bravo")
        await rig.index(*lost)
        [embedded] = [x for x in letters if x.agent == "embed"]
        await rig.embed_records([rig.record(embedded.value, topic=embedded.topic)])
        rows = (await rig.rows(Index.DOCUMENTS, "umbra")).values()
        chunks = {row["doc_id"] for row in (await rig.rows(Index.CHUNKS, "umbra")).values()}
        assert sorted(row["path"] for row in rows if row["doc_id"] in chunks) == [
            "b.md", "embedded.md", write.path,
        ]  # fmt: skip
        assert (theirs.path / write.path).exists()
