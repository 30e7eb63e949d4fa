"""Live changes of a real folder, as events in a real broker."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from streams.events import FileChange
from streams.watcher.status import ScanReport
from streams.watcher.sync import RootSync
from tests.conftest import Stack
from tests.watching import Watched, brief, watched

pytestmark = pytest.mark.engines


@pytest.fixture
async def vault(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched(stack, prefix, tmp_path) as found:
        yield found


def write(root: Path, path: str, content: bytes | str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def briefs(events: list[FileChange]) -> list[tuple[str, ...]]:
    return sorted(brief(event) for event in events)


async def test_c04_an_atomic_save_is_one_change_of_one_file(vault: Watched) -> None:
    recipe = write(vault.root, "recipe.md", "two lemons")
    async with vault.watcher():
        (first,) = await vault.received(1)
        temporary = write(vault.root, ".recipe.md.k3z1", "three")
        await asyncio.sleep(0.01)
        temporary.write_bytes(b"three lemons")
        temporary.rename(recipe)
        (second,) = await vault.received(1)
    assert (first.kind, first.path, first.content, first.origin) == (
        "upserted",
        "recipe.md",
        b"two lemons",
        "scan",
    )
    assert (second.kind, second.path, second.content, second.origin) == (
        "upserted",
        "recipe.md",
        b"three lemons",
        "live",
    )
    assert second.document == first.document
    assert second.version > first.version
    assert (second.moved_from, second.size, second.vault_path) == (None, 12, "recipe.md")


async def test_every_kind_of_save_ends_in_the_last_text(vault: Watched) -> None:
    file = write(vault.root, "note.md", "one")
    async with vault.watcher():
        await vault.received(1)
        file.rename(vault.root / "note.md~")  # vim with a backup copy
        write(vault.root, "note.md", "two")
        (vault.root / "note.md~").unlink()
        assert [e.content for e in await vault.received(1)] == [b"two"]
        file.unlink()  # delete and write again
        write(vault.root, "note.md", "three")
        assert [(e.kind, e.content) for e in await vault.received(1)] == [("upserted", b"three")]


async def test_names_that_are_no_notes_give_no_events(vault: Watched) -> None:
    async with vault.watcher():
        for name in (".git/HEAD.md", ".obsidian/x.md", "~$a.md", "#a.md#", "a.md.tmp", "4913", "picture.png"):
            write(vault.root, name, "x")
        shutil.rmtree(vault.root / ".git")
        assert await vault.received(0) == []


async def test_touch_and_rewriting_the_same_bytes_send_nothing(vault: Watched) -> None:
    file = write(vault.root, "note.md", "one")
    async with vault.watcher():
        await vault.received(1)
        os.utime(file)
        file.write_bytes(b"one")
        assert await vault.received(0) == []


async def test_a_new_folder_with_notes(vault: Watched) -> None:
    async with vault.watcher():
        for number in range(20):
            write(vault.root, f"a/b{number}/c/note.md", f"text {number}")
        events = await vault.received(20)
    assert briefs(events) == sorted(("upserted", f"a/b{n}/c/note.md") for n in range(20))


async def test_a_rename_links_both_sides_and_the_creation_comes_first(vault: Watched) -> None:
    file = write(vault.root, "old.md", "text")
    async with vault.watcher():
        await vault.received(1)
        file.rename(vault.root / "new.md")
        events = await vault.received(2)
    assert briefs(events) == [("deleted", "old.md", "new.md"), ("upserted", "new.md", "old.md")]
    created = next(e for e in events if e.kind == "upserted")
    assert (created.content, created.moved_from) == (b"text", "old.md")


async def test_a_folder_rename_moves_every_note_below(vault: Watched) -> None:
    for name in ("a.md", "deep/b.md", "empty.md"):
        write(vault.root, f"old/{name}", "" if name == "empty.md" else f"text of {name}")
    async with vault.watcher():
        await vault.received(3)
        (vault.root / "old").rename(vault.root / "new")
        events = await vault.received(6)
        write(vault.root, "new/deep/b.md", "edited where it is now")
        (edited,) = await vault.received(1)
    assert briefs(events) == sorted(
        event
        for n in ("a.md", "deep/b.md", "empty.md")
        for event in (("upserted", f"new/{n}", f"old/{n}"), ("deleted", f"old/{n}", f"new/{n}"))
    )
    assert brief(edited) == ("upserted", "new/deep/b.md")


async def test_a_note_moved_out_is_deleted_and_moved_in_is_new(vault: Watched, tmp_path: Path) -> None:
    file = write(vault.root, "note.md", "text")
    async with vault.watcher():
        await vault.received(1)
        file.rename(tmp_path / "outside.md")
        assert briefs(await vault.received(1)) == [("deleted", "note.md")]
        (tmp_path / "outside.md").rename(vault.root / "back.md")
        assert briefs(await vault.received(1)) == [("upserted", "back.md")]


async def test_a_deleted_note_and_a_deleted_folder(vault: Watched) -> None:
    for name in ("a.md", "f/b.md", "f/g/c.md", "keep.md"):
        write(vault.root, name, name)
    async with vault.watcher():
        await vault.received(4)
        (vault.root / "a.md").unlink()
        shutil.rmtree(vault.root / "f")
        events = await vault.received(3)
        # The last note may go too: the root itself is the same as before.
        (vault.root / "keep.md").unlink()
        last = await vault.received(1)
    assert briefs(events) == [("deleted", "a.md"), ("deleted", "f/b.md"), ("deleted", "f/g/c.md")]
    assert briefs(last) == [("deleted", "keep.md")]


async def test_c15_both_normal_forms_are_one_document(vault: Watched) -> None:
    composed = "회의록.md"
    decomposed = unicodedata.normalize("NFD", composed)
    write(vault.root, decomposed, "one")
    write(vault.root, "목차.md", f"[[{composed}]]")
    async with vault.watcher():
        events = {e.path: e for e in await vault.received(2)}
        assert events[composed].vault_path == decomposed
        (vault.root / decomposed).unlink()
        write(vault.root, composed, "two")
        (second,) = await vault.received(1)
    assert (second.kind, second.path, second.vault_path) == ("upserted", composed, composed)
    assert second.document.doc_id == events[composed].document.doc_id


async def test_a_burst_is_neither_lost_nor_doubled(vault: Watched) -> None:
    async with vault.watcher():
        for number in range(1_500):
            write(vault.root, f"n{number % 10}/note{number}.md", f"text {number}")
        events = await vault.received(1_500)
        shutil.rmtree(vault.root / "n1")
        removed = await vault.received(150)
    assert {e.path for e in events} == {f"n{n % 10}/note{n}.md" for n in range(1_500)}
    assert all(e.kind == "deleted" and e.path.startswith("n1/") for e in removed)


async def test_mass_removal_is_held_and_the_rest_goes_on(vault: Watched) -> None:
    for number in range(30):
        write(vault.root, f"f{number % 2}/{number}.md", f"text {number}")
    write(vault.root, "keep.md", "k")
    async with vault.watcher():
        await vault.received(31)
        shutil.rmtree(vault.root / "f0")
        shutil.rmtree(vault.root / "f1")
        write(vault.root, "keep.md", "changed")
        assert briefs(await vault.received(1)) == [("upserted", "keep.md")]
        held = vault.status()["held_removals"]
        assert (held["reason"], held["count"], held["known"]) == ("mass_removal", 30, 31)
        assert held["confirm"] == "hopline rescan --confirm-removals --root main"
        write(vault.root, "f0/0.md", "text 0")
        assert await vault.received(0) == []
        assert vault.status()["held_removals"]["count"] == 29
        (vault.root / "f0/0.md").unlink()
        assert await vault.received(0) == []
        assert vault.status()["held_removals"]["count"] == 30
        await vault.index({"f0/0.md": b"text 0", "keep.md": b"changed"})
        report = await vault.rescan(confirm_removals=True)
        assert isinstance(report, ScanReport)
        assert (report.deleted, report.held) == (1, None)
        assert briefs(await vault.received(2)) == [("deleted", "f0/0.md"), ("upserted", "keep.md")]
        assert vault.status()["held_removals"] is None


async def test_a_root_that_goes_and_comes_back(vault: Watched) -> None:
    for name in ("a.md", "b.md"):
        write(vault.root, name, name)
    away = vault.root.with_name("away")
    async with vault.watcher():
        await vault.received(2)
        vault.root.rename(away)
        await vault.until_state("unavailable")
        assert await vault.received(0) == []
        away.rename(vault.root)
        await vault.until_state("watching")
        write(vault.root, "c.md", "new")
        # The index of this test knows nothing, so what the scan resends is what the index lacks.
        assert {brief(e) for e in await vault.received(3)} == {("upserted", f"{n}.md") for n in "abc"}


async def test_an_empty_folder_in_place_of_the_root_deletes_nothing(vault: Watched) -> None:
    for name in ("a.md", "b.md"):
        write(vault.root, name, name)
    async with vault.watcher():
        await vault.received(2)
        vault.root.rename(vault.root.with_name("away"))
        vault.root.mkdir()
        assert await vault.received(0) == []
        await vault.until_state("watching")
        assert vault.status()["held_removals"]["reason"] == "empty_vault"


@pytest.fixture
async def vault_in_memory(stack: Stack, prefix: str) -> AsyncIterator[Watched]:
    """On a file system that holds any time; usual ones end in 2446 or so."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - not for what is private
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        async with watched(stack, prefix, Path(folder)) as found:
            yield found


async def test_a_time_that_no_date_can_tell_is_left_out(vault_in_memory: Watched) -> None:
    vault = vault_in_memory
    os.utime(write(vault.root, "far.md", "from the far future"), (300_000_000_000, 300_000_000_000))
    async with vault.watcher():
        (first,) = await vault.received(1)
        os.utime(write(vault.root, "old.md", "from long ago"), (-100_000_000_000, -100_000_000_000))
        (second,) = await vault.received(1)
    assert (first.path, first.modified_at) == ("far.md", None)
    assert (second.path, second.modified_at) == ("old.md", None)


async def test_a_name_that_is_not_utf8_is_reported_and_the_rest_goes_on(vault: Watched) -> None:
    write(vault.root, "note.md", "one")
    async with vault.watcher():
        await vault.received(1)
        await vault.index({"note.md": b"one"})
        write(vault.root, os.fsdecode(b"\xff\xfe.md"), "no name to call it by")
        await asyncio.sleep(1)
        write(vault.root, "note.md", "two")
        assert [(e.path, e.content) for e in await vault.received(1)] == [("note.md", b"two")]
        assert vault.status()["last_scan"]["problems"] == {
            "count": 1,
            "sample": [{"path": "\\udcff\\udcfe.md", "reason": "not_utf8"}],
        }


async def test_touches_of_such_a_name_make_no_storm_of_scans(
    vault: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[str] = []
    real = RootSync.scan

    async def counted(sync: RootSync, **options: bool) -> ScanReport:
        scans.append(sync.root.name)
        return await real(sync, **options)

    monkeypatch.setattr(RootSync, "scan", counted)
    async with vault.watcher():
        for number in range(40):
            write(vault.root, os.fsdecode(b"\xff.md"), str(number))
            await asyncio.sleep(0.1)
        write(vault.root, "note.md", "one")
        assert [e.path for e in await vault.received(1)] == ["note.md"]
    assert len(scans) <= 4
