"""What a kill or a power cut leaves of a vault's writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.settings import IndexingSettings
from indexers.vault.durable import remove_leftovers
from indexers.vault.local import LocalVaultFiles
from indexers.vault.tree import VaultTree
from streams.agents.ingest.memories import Memories
from streams.agents.vaults import Vaults
from streams.event_fields import new_event_fields
from streams.events import MemoryChange, MemoryChanged
from streams.watcher.sweep import LEFTOVER_SECONDS, listed_and_swept

ADA = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.PERSONAL)
NAME = ".hopline-0123456789abcdef.tmp"
OTHERS = (
    ".hopline-0123.tmp",
    f"{NAME}.md",
    "hopline-0123456789abcdef.tmp",
    ".hopline-0123456789ABCDEF.tmp",
    "a.tmp",
)


def put(path: Path, *, age: float = 3600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"the whole memory")
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or p.is_file()}


def test_only_our_own_old_temporary_files_go(tmp_path: Path) -> None:
    vault, elsewhere = tmp_path / "vault", tmp_path / "elsewhere"
    put(vault / "a" / NAME)
    for name in OTHERS:
        put(vault / "a" / name)
    young = put(vault / "a" / NAME.replace("0", "1", 1), age=30)
    theirs = put(elsewhere / NAME)
    (vault / "a" / NAME.replace("0", "2", 1)).symlink_to(theirs)
    (vault / "a" / NAME.replace("0", "3", 1)).mkdir()
    (vault / "linked").symlink_to(elsewhere)
    kept = names(vault) - {f"a/{NAME}"}
    assert remove_leftovers(vault / "a", older_seconds=60) == 1
    assert remove_leftovers(vault / "linked", older_seconds=60) == 0
    assert remove_leftovers(vault / "gone", older_seconds=60) == 0
    assert remove_leftovers(young, older_seconds=0) == 0
    assert (names(vault), theirs.exists()) == (kept, True)


def test_a_scan_removes_what_a_killed_process_left_anywhere(tmp_path: Path) -> None:
    files = LocalVaultFiles(tmp_path)
    files.write_atomic("회의/a.md", b"x")
    put(tmp_path / NAME)
    put(tmp_path / "회의" / "깊은" / NAME)
    put(tmp_path / "회의" / NAME, age=LEFTOVER_SECONDS - 30)
    put(tmp_path / ".git" / NAME)
    assert [entry.path for entry in listed_and_swept(files).entries] == ["회의/a.md"]
    assert names(tmp_path) == {f"회의/{NAME}", f".git/{NAME}", "회의/a.md"}


def test_a_folder_that_may_not_be_changed_stops_no_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / NAME)
    (tmp_path / "a.md").write_bytes(b"x")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "read only")

    monkeypatch.setattr("os.unlink", refused)
    assert [entry.path for entry in listed_and_swept(LocalVaultFiles(tmp_path)).entries] == ["a.md"]


def test_an_erasure_takes_what_was_left_beside_its_document(tmp_path: Path) -> None:
    tree = VaultTree([], tmp_path)
    files, path = tree.get(ADA), "memories/2031/회의.md"
    assert files is not None
    files.write_atomic(path, b"x")
    home = tmp_path / "acme/personal/ada"
    left = put(home / "memories/2031" / NAME, age=90)
    kept = [put(home / "memories/2031" / NAME.replace("0", "1", 1), age=30), put(home / "memories" / NAME)]
    memories = Memories(vaults=Vaults(files=tree, patience_seconds=1), settings=IndexingSettings())
    ends: list[MemoryChange] = ["forgotten", "erased"]
    for version, kind in enumerate(ends):
        assert left.exists()
        fields = new_event_fields(ADA)
        memories.carry_out(
            MemoryChanged(**fields, version=version, path=path, kind=kind, by="ada"), [], set()
        )
    assert names(home) == {p.relative_to(home).as_posix() for p in kept}


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Inodes of what was brought to the disk."""
    seen: set[int] = set()
    real: Callable[[int], None] = os.fsync

    def fsync(handle: int) -> None:
        seen.add(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr("os.fsync", fsync)
    return seen


def test_a_new_namespace_is_on_the_disk_with_its_first_file(tmp_path: Path, synced: set[int]) -> None:
    files = VaultTree([], tmp_path / "memories").get(ADA)
    assert files is not None
    files.write_atomic("memories/2031/a.md", b"x")
    folder = tmp_path / "memories/acme/personal/ada/memories/2031"
    way = [folder, *folder.parents][: len(folder.relative_to(tmp_path).parts) + 1]
    assert way[-1] == tmp_path
    assert [p for p in way if p.stat().st_ino not in synced] == []
