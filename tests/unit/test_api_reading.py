"""Texts of any size: exact pages, little memory, one hash a file, and never another file's text."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.hashing import content_hash
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.domain.text import decode_text
from indexers.domain.text_window import WindowReader
from indexers.vault.local import LocalVaultFiles
from search_api.known_files import KnownFile, KnownFiles, Stamp
from search_api.reading import FILES_A_JOB, READ_STEP_BYTES, FileText, TextPage, VaultLibrary

LONG_AGO = (1_000_000_000, 1_000_000_000)
ADA = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)
BOB = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("bob"), scope=Scope.SHARED)
LINE = "줄 🚢 e\u0301 line\r\n"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the index says of a file."""

    path: str
    content_hash: str
    size: int
    tenant_id: str = "acme"
    agent_id: str = "ada"
    team_id: str | None = None
    scope: str = "shared"


@dataclass(kw_only=True)
class CountingVault(LocalVaultFiles):
    """Counts the bytes that are read of it."""

    root: Path
    bytes_read: int = 0

    def open(self, path: str) -> BinaryIO:
        vault = self

        class Counted:
            def __init__(self, file: BinaryIO) -> None:
                self._file = file
                self.seek, self.fileno = file.seek, file.fileno

            def read(self, size: int) -> bytes:
                piece = self._file.read(size)
                vault.bytes_read += len(piece)
                return piece

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                self._file.close()

        return Counted(super().open(path))  # type: ignore[return-value]


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture(autouse=True)
def no_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of these tests are new, and the time of change can't be set back."""
    monkeypatch.setattr("search_api.known_files.QUIET_NS", -60_000_000_000)


def note(root: Path, path: str, raw: bytes) -> Row:
    (root / path).write_bytes(raw)
    return Row(path=path, content_hash=content_hash(raw), size=len(raw))


@given(
    st.lists(
        st.sampled_from([LINE.encode(), b"\xff", b"\xe2\x82", b"a", b"\xef\xbf\xbd", b"\xef\xbb\xbf"])
    ).map(b"".join)
    | st.binary(max_size=40),
    st.integers(1, 7),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_a_window_is_the_same_part_of_the_same_text(raw: bytes, step: int, start: int, length: int) -> None:
    whole = decode_text(raw, max_bytes=len(raw))
    window = WindowReader(start=start, end=start + length)
    for place in range(0, len(raw), step):
        window.feed(raw[place : place + step])
    facts = window.facts()
    assert (facts.is_text, facts.warnings) == (whole.is_text, whole.warnings)
    text = raw.decode("utf-8", "replace")
    assert (facts.total_chars, window.text) == (len(text), text[start : start + length])
    later = WindowReader(start=start, end=start + length, begin=facts.mark_before(start))
    later.feed(raw[facts.mark_before(start).bytes :])
    later.facts()
    assert later.text == window.text


async def test_a_large_file_takes_little_memory_and_its_pages_are_exact(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    text = "\ufeff# Large\r\n" + LINE * 2_700_000
    raw = text.encode()
    assert len(raw) > 50_000_000
    row = note(tmp_path, "large.md", raw)
    del raw
    vault = CountingVault(root=tmp_path)
    library = VaultLibrary({ADA: vault}, executor)
    starts = (0, 7, READ_STEP_BYTES - 1, len(text) // 2, len(text) - 100, len(text), len(text) + 5, 2**53)
    expected = [text[start : start + 1_000] for start in starts]
    total = len(text)
    del text
    tracemalloc.start()
    try:
        found = [await library.page(row, start=start, max_chars=1_000) for start in starts]
        head = await library.apply(row, lambda file: file, max_bytes=10_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [
        TextPage(
            text=part,
            start=min(start, total),
            end=min(start, total) + len(part),
            total_chars=total,
            warnings=(),
        )
        for start, part in zip(starts, expected, strict=True)
    ]
    assert isinstance(head, FileText)
    assert head.text.startswith(expected[0])
    assert peak < 10_000_000
    # The first page reads all of it, each later one a piece or two.
    assert vault.bytes_read < row.size + len(starts) * 4 * READ_STEP_BYTES


async def test_a_file_that_changes_between_two_pages_is_noticed(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    row = note(tmp_path, "a.md", b"first text")
    library = VaultLibrary({ADA: LocalVaultFiles(tmp_path)}, executor)
    os.utime(tmp_path / "a.md", LONG_AGO)
    assert isinstance(await library.page(row, start=0, max_chars=5), TextPage)
    # In place, of the same length, and with the old time of modification.
    with (tmp_path / "a.md").open("r+b") as file:
        await asyncio.sleep(0.05)
        file.write(b"other text")
    os.utime(tmp_path / "a.md", LONG_AGO)
    assert await library.page(row, start=0, max_chars=5) == "changed"
    assert await library.apply(row, lambda file: file, max_bytes=100) == "changed"
    (tmp_path / "a.md").write_bytes(b"first text, grown")
    assert await library.page(row, start=0, max_chars=5) == "changed"


async def test_what_is_known_of_one_vault_says_nothing_of_another(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
    row = note(tmp_path / "ada", "a.md", b"of ada")
    note(tmp_path / "bob", "a.md", b"of bob")
    vaults = {ADA: LocalVaultFiles(tmp_path / "ada"), BOB: LocalVaultFiles(tmp_path / "bob")}
    library = VaultLibrary(vaults, executor)
    assert isinstance(await library.page(row, start=0, max_chars=9), TextPage)
    bobs = Row(path="a.md", content_hash=row.content_hash, size=row.size, agent_id="bob")
    assert await library.page(bobs, start=0, max_chars=9) == "changed"


def test_only_files_at_rest_are_remembered_and_only_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownFiles(2)
    (tmp_path / "a").touch()
    with (tmp_path / "a").open("rb") as file:
        stamp = Stamp.of(file.fileno())
    entry = KnownFile(stamp=stamp, content_hash="sha256:0", facts=None)
    for path in ("a", "b", "c"):
        known.remember(ADA, path, entry)
    assert [known.find(ADA, path, stamp) for path in ("a", "b", "c")] == [None, entry, entry]
    assert known.find(BOB, "c", stamp) is None
    monkeypatch.setattr("search_api.known_files.QUIET_NS", 2_000_000_000)
    known.remember(ADA, "d", entry)
    assert known.find(ADA, "d", stamp) is None
    assert stamp.is_quiet(stamp.changed_ns + 2_000_000_001)


async def test_many_files_are_worked_on_in_order_and_each_for_itself(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    rows = [note(tmp_path, f"{n}.md", f"text {n}".encode()) for n in range(2 * FILES_A_JOB + 3)]
    (tmp_path / "3.md").unlink()
    (tmp_path / "12.md").write_bytes(b"another")
    library = VaultLibrary({ADA: LocalVaultFiles(tmp_path)}, executor)
    found = await library.apply_all([(row, lambda file: file.text) for row in rows], max_bytes=100)
    expected = [f"text {n}" for n in range(len(rows))]
    expected[3], expected[12] = "gone", "changed"
    assert found == expected
    assert await library.apply_all([], max_bytes=100) == []
