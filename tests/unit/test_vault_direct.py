"""The short way to a note: only to what plainly stands there."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from indexers.vault.direct import open_directly
from indexers.vault.local import LocalVaultFiles

KOREAN = "회의록.md"


def next_descriptor() -> int:
    """The lowest that is free: it rises when one was left open."""
    probe = os.open(os.devnull, os.O_RDONLY)
    os.close(probe)
    return probe


@pytest.fixture
def root(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    (vault / "a" / "b").mkdir(parents=True)
    (vault / "a" / "b" / "x.md").write_bytes(b"x")
    (vault / "top.md").write_bytes(b"top")
    return vault


@pytest.mark.parametrize(("path", "content"), [("a/b/x.md", b"x"), ("top.md", b"top")])
def test_a_plain_file_is_opened_also_below_a_linked_root(root: Path, path: str, content: bytes) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    for start in (root, link):
        file = open_directly(start, path)
        assert file is not None
        with file:
            assert (file.read(100), file.read(1)) == (content, b"")


@pytest.mark.parametrize(
    "path",
    ["missing.md", "a", "a/b/x.md/y.md", "linked.md", "folder/x.md", "pipe.md", f"{'n' * 256}.md", KOREAN],
)
def test_anything_else_is_left_to_a_closer_look(root: Path, path: str) -> None:
    (root / "linked.md").symlink_to("top.md")
    (root / "folder").symlink_to("a/b")
    os.mkfifo(root / "pipe.md")
    (root / unicodedata.normalize("NFD", KOREAN)).write_bytes(b"decomposed")
    free = next_descriptor()
    assert open_directly(root, path) is None
    assert next_descriptor() == free


def test_no_vault_is_left_to_a_closer_look(root: Path) -> None:
    assert open_directly(root.parent / "missing", "top.md") is None
    assert open_directly(root / "top.md", "top.md") is None


def test_both_ways_read_the_same(root: Path) -> None:
    (root / "linked.md").symlink_to("a/b/x.md")
    files = LocalVaultFiles(root)
    assert [files.read(path) for path in ("a/b/x.md", "linked.md", "./top.md")] == [b"x", b"x", b"top"]
