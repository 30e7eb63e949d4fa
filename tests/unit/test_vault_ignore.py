from __future__ import annotations

import sys
import unicodedata

import pytest

from indexers.vault.ignore import is_note, is_walked_folder
from indexers.vault.local import _COMPOSED_TO_ASCII

NOTES = [
    "note.md",
    "NOTE.MD",
    "a/b/c.markdown",
    "회의록.md",
    "with space/x y.md",
    "tmp.md",
    "4913.md",
    "part.tmp.md",
    "a..md",
    "~draft.md",
]
IGNORED = [
    "note.txt",
    "note",
    "md",
    ".md",
    ".note.md",
    ".recipe.md.k3z1",
    ".#recipe.md",
    "#recipe.md#",
    "recipe.md~",
    "~$recipe.md",
    "recipe.md.swp",
    ".recipe.md.swp",
    "recipe.md.tmp",
    "recipe.md.bak",
    "recipe.md.part",
    "recipe.md.crdownload",
    ".sync-recipe.md",
    "~syncthing~recipe.md.tmp",
    "recipe.sync-conflict-20310405-101112-ABCDEFG.md",
    "4913",
    ".git/x.md",
    ".obsidian/templates/x.md",
    ".hopline/x.md",
    ".trash/x.md",
    "a/.b/c/x.md",
]


@pytest.mark.parametrize("path", NOTES)
def test_a_note(path: str) -> None:
    assert is_note(path)


@pytest.mark.parametrize("path", IGNORED)
def test_an_ignored_name(path: str) -> None:
    assert not is_note(path)


@pytest.mark.parametrize(("name", "walked"), [("notes", True), ("~old", True), (".git", False), (".", False)])
def test_folders(name: str, walked: bool) -> None:  # noqa: FBT001 - a table
    assert is_walked_folder(name) is walked


def test_the_ascii_characters_that_something_else_composes_to_are_all_known() -> None:
    composed = {
        unicodedata.normalize("NFC", chr(point))
        for point in range(128, sys.maxunicode + 1)
        if not 0xD800 <= point <= 0xDFFF
    }
    assert {c for c in composed if len(c) == 1 and c.isascii()} == _COMPOSED_TO_ASCII
