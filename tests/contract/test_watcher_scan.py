"""Scans: vault against index, over a real broker and a real search engine."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from indexers.errors import VaultUnavailable
from indexers.settings import VaultRoot
from streams.settings import WatcherSettings
from streams.versions import now_version
from streams.watcher.status import ScanReport
from tests.conftest import Stack
from tests.contract.test_watcher_live import briefs, write
from tests.watching import Watched, brief, watched

pytestmark = pytest.mark.engines


@pytest.fixture
async def vault(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched(stack, prefix, tmp_path) as found:
        yield found


def counts(report: object) -> tuple[int, int, int, int]:
    """Files, sent, moved, deleted."""
    assert isinstance(report, ScanReport)
    return (report.files, report.upserted, report.moved, report.deleted)


async def test_a_scan_sends_all_files_and_deletes_what_only_the_index_knows(vault: Watched) -> None:
    write(vault.root, "a.md", "a")
    write(vault.root, "b.md", "b")
    ahead = now_version() + 3_600_000_000
    await vault.index({"a.md": b"a", "gone.md": b"gone"}, version=ahead)
    assert counts(await vault.rescan()) == (2, 2, 0, 1)
    events = await vault.received(3)
    assert briefs(events) == [("deleted", "gone.md"), ("upserted", "a.md"), ("upserted", "b.md")]
    # The index holds a version of a clock that runs ahead: what is new must be newer still.
    assert min(e.version for e in events) > ahead
    assert {e.origin for e in events} == {"scan"}


async def test_a_file_moved_while_nobody_watched(vault: Watched) -> None:
    write(vault.root, "new/place.md", "the text")
    await vault.index({"old.md": b"the text", "new/other.md": b"o"})
    write(vault.root, "new/other.md", b"o")
    assert counts(await vault.rescan()) == (2, 2, 1, 1)
    assert briefs(await vault.received(3)) == [
        ("deleted", "old.md", "new/place.md"),
        ("upserted", "new/other.md"),
        ("upserted", "new/place.md", "old.md"),
    ]


async def test_documents_of_other_namespaces_are_left_alone(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "v").mkdir()
    roots = [
        VaultRoot(name="main", path=tmp_path / "v", agent="other"),
        VaultRoot(name="second", path=tmp_path / "v", agent="me"),
    ]
    async with watched(stack, prefix, tmp_path, roots=roots) as vault:
        await vault.index({"theirs.md": b"x"})
        write(tmp_path / "v", "mine.md", "m")
        assert counts(await vault.rescan(root="second")) == (1, 1, 0, 0)
        assert briefs(await vault.received(1)) == [("upserted", "mine.md")]


async def test_an_empty_or_missing_root_deletes_nothing_until_confirmed(vault: Watched) -> None:
    await vault.index({"a.md": b"a"})
    report = await vault.rescan()
    assert isinstance(report, ScanReport)
    assert report.held is not None
    assert (report.held.reason, report.held.paths, report.deleted) == ("empty_vault", ("a.md",), 0)
    vault.root.rmdir()
    assert isinstance(await vault.rescan(confirm_removals=True), VaultUnavailable)
    assert await vault.received(0) == []
    vault.root.mkdir()
    assert counts(await vault.rescan(confirm_removals=True)) == (0, 0, 0, 1)
    assert briefs(await vault.received(1)) == [("deleted", "a.md")]


async def test_the_guard_holds_a_large_share_and_lets_it_go_when_confirmed(vault: Watched) -> None:
    await vault.index({f"{n}.md": str(n).encode() for n in range(25)})
    write(vault.root, "0.md", "0")
    report = await vault.rescan()
    assert isinstance(report, ScanReport)
    assert report.held is not None
    assert (report.held.reason, len(report.held.paths), report.held.known) == ("mass_removal", 24, 25)
    await vault.received(1)
    assert counts(await vault.rescan(confirm_removals=True)) == (1, 1, 0, 24)
    await vault.received(25)


async def test_odd_files_and_their_neighbours(vault: Watched) -> None:
    await vault.index({"pipe.md": b"p"})
    write(vault.root, "fine.md", "f")
    write(vault.root, "nul.md", b"a\x00b")
    write(vault.root, "bytes.md", b"\xff\xfe\x00")
    write(vault.root, "empty.md", b"")
    long = "/".join(["긴 폴더 이름입니다"] * 20) + "/note.md"
    write(vault.root, long, "deep")
    os.mkfifo(vault.root / "pipe.md")
    (vault.root / "dangling.md").symlink_to("nowhere.md")
    (vault.root / "loop").symlink_to(".")
    with open(os.fsencode(vault.root) + b"/\xe9.md", "wb"):  # noqa: ASYNC230, PTH123 - a name that Path can't spell
        pass
    report = await vault.rescan()
    assert isinstance(report, ScanReport)
    assert [(p.path, p.reason) for p in report.problems] == [
        ("\\udce9.md", "not_utf8"),
        ("dangling.md", "broken_link"),
        ("pipe.md", "not_a_file"),
    ]
    events = await vault.received(6)
    assert len(long.encode()) > 255
    assert {e.path: e.content for e in events if e.kind == "upserted"} == {
        "fine.md": b"f",
        "nul.md": b"a\x00b",
        "bytes.md": b"\xff\xfe\x00",
        "empty.md": b"",
        long: b"deep",
    }
    assert [e.path for e in events if e.kind == "deleted"] == ["pipe.md"]


async def test_a_large_file_travels_as_a_reference(vault: Watched) -> None:
    text = b"".join(b"gauge %06d reads low.\n" % n for n in range(270_000))
    write(vault.root, "dump.md", text)
    write(vault.root, "small.md", "heliotrope")
    await vault.rescan()
    events = {e.path: e for e in await vault.received(2)}
    assert (events["dump.md"].content, events["dump.md"].size) == (None, len(text))
    assert events["small.md"].content == b"heliotrope"


async def test_what_cannot_be_read_is_never_deleted(vault: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything: the kernel's refusal is put where the kernel would answer."""
    write(vault.root, "shut/inside.md", "i")
    write(vault.root, "locked.md", "l")
    write(vault.root, "fine.md", "f")
    await vault.index({"shut/inside.md": b"i", "locked.md": b"l", "fine.md": b"f"})
    scandir, opened = os.scandir, os.open

    def shut(path: str) -> object:
        if path.endswith("/shut"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    def locked(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("locked.md"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("os.scandir", shut)
    monkeypatch.setattr("os.open", locked)
    report = await vault.rescan()
    assert isinstance(report, ScanReport)
    assert [(p.path, p.reason) for p in report.problems] == [
        ("locked.md", "unreadable_file"),
        ("shut", "unreadable_folder"),
    ]
    assert briefs(await vault.received(1)) == [("upserted", "fine.md")]


async def test_roots_do_not_disturb_each_other(stack: Stack, prefix: str, tmp_path: Path) -> None:
    roots = [
        VaultRoot(name="main", path=tmp_path / "one", tenant="t1"),
        VaultRoot(name="missing", path=tmp_path / "missing", tenant="t1", agent="b"),
        VaultRoot(name="two", path=tmp_path / "two", tenant="t2"),
    ]
    for name in ("one", "two"):
        write(tmp_path / name, "note.md", name)
    async with watched(stack, prefix, tmp_path, roots=roots) as vault, vault.watcher():
        await vault.received(2)
        assert vault.status("missing")["state"] == "unavailable"
        (tmp_path / "one/note.md").rename(tmp_path / "two/moved.md")
        events = await vault.received(2)
        assert sorted((e.tenant_id, *brief(e)) for e in events) == [
            ("t1", "deleted", "note.md"),
            ("t2", "upserted", "moved.md"),
        ]
        write(tmp_path / "missing", "late.md", "x")
        assert [(e.agent_id, e.path) for e in await vault.received(1)] == [("b", "late.md")]


async def test_repeated_scans_send_only_what_the_index_lacks(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    settings = WatcherSettings(rescan_seconds=1.0)
    async with watched(stack, prefix, tmp_path, settings=settings) as vault:
        file = write(vault.root, "a.md", "a")
        write(vault.root, "b.md", "b")
        old = time.time() - 60
        for path in (file, vault.root / "b.md"):
            os.utime(path, (old, old))
        await vault.index({"a.md": b"a", "b.md": b"b"})
        async with vault.watcher():
            await vault.received(2)
            assert await vault.received(0) == []
            # The index lost its way: the next scan mends it without any change of the files.
            await vault.index({"b.md": b"other"}, version=2)
            found = {(e.path, e.origin) for e in await vault.received_at_least(1)}
            assert found == {("b.md", "scan")}


async def test_three_thousand_files_are_scanned_fast_enough(vault: Watched) -> None:
    for number in range(3_000):
        write(vault.root, f"f{number % 50}/note{number}.md", f"# Note {number}\n\n" + "Some text. " * 100)
    await vault.index({f"f{n % 50}/note{n}.md": b"x" for n in range(3_000)})
    started = time.perf_counter()
    report = await vault.rescan()
    seconds = time.perf_counter() - started
    assert counts(report) == (3_000, 3_000, 0, 0)
    print(f"\n{3_000 / seconds:.0f} files/s, start of the command included")  # noqa: T201 - a measurement
    assert seconds < 10
