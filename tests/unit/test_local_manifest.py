"""A damaged download is found before it is used."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hopline.local.manifest import NAME, damaged_archive, first_fault, write_manifest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    with zipfile.ZipFile(tmp_path / "lib" / "a.jar", "w") as jar:
        jar.writestr("A.class", b"\xca\xfe\xba\xbe" * 100)
    (tmp_path / "lib" / "b.txt").write_text("words", encoding="utf-8")
    write_manifest(tmp_path, source="s1")
    return tmp_path


def test_untouched_folder_is_whole(home: Path) -> None:
    assert first_fault(home, source="s1") is None


def test_half_downloaded_file_is_found(home: Path) -> None:
    jar = home / "lib" / "a.jar"
    whole = jar.read_bytes()
    jar.write_bytes(whole[: len(whole) // 2])
    assert first_fault(home, source="s1") == f"lib/a.jar has {len(whole) // 2} of {len(whole)} bytes"


def test_changed_byte_is_found(home: Path) -> None:
    (home / "lib" / "b.txt").write_text("wards", encoding="utf-8")
    assert first_fault(home, source="s1") == "lib/b.txt is damaged"


def test_missing_file_is_found(home: Path) -> None:
    (home / "lib" / "b.txt").unlink()
    assert first_fault(home, source="s1") == "lib/b.txt is missing"


def test_other_source_is_another_version(home: Path) -> None:
    assert first_fault(home, source="s2") == "made for another version"


def test_file_that_came_later_is_no_fault(home: Path) -> None:
    (home / "hs_err.log").touch()
    assert first_fault(home, source="s1") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"files": 3, "source": "s1"}', b"\xff"])
def test_broken_manifest_is_a_fault(home: Path, content: bytes) -> None:
    (home / NAME).write_bytes(content)
    assert first_fault(home, source="s1") == "its manifest can't be read"


def test_folder_without_manifest_is_unfinished(tmp_path: Path) -> None:
    assert first_fault(tmp_path, source="s1") == "no manifest"


def test_whole_jars_are_passed(home: Path) -> None:
    assert damaged_archive(home) is None


def test_cut_jar_is_named(home: Path) -> None:
    jar = home / "lib" / "a.jar"
    jar.write_bytes(jar.read_bytes()[:-30])
    assert damaged_archive(home) == jar
