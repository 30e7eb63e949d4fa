from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.ports import FileEntry
from indexers.vault.local import LocalVaultFiles
from streams.versions import VersionClock
from streams.watcher.changes import modified_at
from streams.watcher.guard import RemovalGuard
from streams.watcher.manifest import RACY_NS, Manifest, Seen, topmost
from streams.watcher.moves import match_moves
from streams.watcher.paths import changed_identities
from streams.watcher.reading import FileRead, read_stable

GUARD = RemovalGuard(ratio=0.3, minimum=20)


def seen(text: str, *, inode: int | None = None, size: int | None = 9) -> Seen:
    return Seen(content_hash=text, inode=inode, size=size, modified_ns=1)


@pytest.mark.parametrize(
    ("removed", "known", "empty", "expected"),
    [
        (0, 0, True, None),
        (0, 100, False, None),
        (19, 19, False, None),
        (20, 20, False, "mass_removal"),
        (20, 66, False, "mass_removal"),
        (20, 67, False, None),
        (1, 1, False, None),
        (1, 1, True, "empty_vault"),
        (10_000, 10_000, True, "empty_vault"),
    ],
)
def test_guard(removed: int, known: int, empty: bool, expected: str | None) -> None:  # noqa: FBT001 - a table
    assert GUARD.hold(removed=removed, known=known, vault_is_empty=empty) == expected


@pytest.mark.parametrize(
    ("removed", "added", "expected"),
    [
        pytest.param({"a.md": seen("x")}, {"b.md": seen("x")}, {"b.md": "a.md"}, id="same text"),
        pytest.param({"a.md": seen("x")}, {"b.md": seen("y")}, {}, id="other text"),
        pytest.param({"a.md": seen("x", inode=1)}, {"b.md": seen("y", inode=1)}, {}, id="inode used again"),
        pytest.param(
            {"a.md": seen("x", inode=1)},
            {"d/a.md": seen("y", inode=1)},
            {"d/a.md": "a.md"},
            id="moved and edited",
        ),
        pytest.param({"a.md": seen("e", size=0)}, {"b.md": seen("e", size=0)}, {}, id="two empty files"),
        pytest.param(
            {"a.md": seen("e", size=0, inode=1)},
            {"b.md": seen("e", size=0, inode=1)},
            {"b.md": "a.md"},
            id="one empty file",
        ),
        pytest.param(
            {"a/x.md": seen("t"), "a/y.md": seen("t")},
            {"b/y.md": seen("t"), "b/x.md": seen("t")},
            {"b/x.md": "a/x.md", "b/y.md": "a/y.md"},
            id="copies keep their names",
        ),
        pytest.param(
            {"1.md": seen("t", inode=1), "2.md": seen("t", inode=2)},
            {"3.md": seen("t", inode=2), "4.md": seen("t", inode=1)},
            {"3.md": "2.md", "4.md": "1.md"},
            id="inodes before names",
        ),
        pytest.param(
            {"a.md": seen("t"), "b.md": seen("t")}, {"c.md": seen("t")}, {"c.md": "a.md"}, id="path order"
        ),
        pytest.param(
            {"a.md": Seen(content_hash="t")},
            {"b.md": seen("t", inode=5)},
            {"b.md": "a.md"},
            id="known from the index only",
        ),
    ],
)
def test_moves(removed: dict[str, Seen], added: dict[str, Seen], expected: dict[str, str]) -> None:
    assert match_moves(removed, added) == expected


states = st.builds(
    Seen,
    content_hash=st.sampled_from("xyz"),
    inode=st.none() | st.integers(1, 4),
    size=st.integers(0, 2),
    modified_ns=st.just(1),
)
sides = st.dictionaries(st.sampled_from([f"{d}/{n}.md" for d in "ab" for n in "pqr"]), states, max_size=6)


@given(sides, sides, st.randoms())
def test_moves_pair_each_path_once_whatever_the_order(
    removed: dict[str, Seen], added: dict[str, Seen], rnd: random.Random
) -> None:
    moves = match_moves(removed, added)
    assert moves.keys() <= added.keys()
    assert len(set(moves.values())) == len(moves)
    assert set(moves.values()) <= removed.keys()
    shuffled = [dict(rnd.sample(list(side.items()), len(side))) for side in (removed, added)]
    assert match_moves(*shuffled) == moves


def test_a_removed_folder_stands_for_all_below_it() -> None:
    manifest = Manifest({path: seen("x") for path in ("a.md", "a/b.md", "a/c/d.md", "ab/e.md")})
    assert list(manifest.below({"a"})) == ["a/b.md", "a/c/d.md"]
    assert list(manifest.below({"a/c", "a.md"})) == ["a.md", "a/c/d.md"]
    assert topmost({"a/c/d.md", "a", "ab", "ab.md"}) == ["a", "ab", "ab.md"]


def test_what_was_read_too_soon_after_its_change_is_never_taken_as_unchanged() -> None:
    entry = FileEntry(path="a.md", vault_path="a.md", size=1, modified_ns=1_000_000_000, inode=7)
    assert not Seen.of(entry, "h", read_at_ns=entry.modified_ns + RACY_NS - 1).same_file(entry)
    assert Seen.of(entry, "h", read_at_ns=entry.modified_ns + RACY_NS).same_file(entry)


def test_identities_of_changed_paths(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    paths = ["a.md", "link/b.md", ".git/x.md", "a/.tmp.md", "bad\nname.md", "folder"]
    found = changed_identities(str(root), [f"{root}/{p}" for p in paths] + ["/etc/x.md", str(root)])
    assert found == {"a.md", "link/b.md", "real/b.md", "folder"}


class GrowingFiles(LocalVaultFiles):
    """A file that grows whenever it is read, so many times."""

    growths = 0

    def read(self, path: str, *, start: int = 0, max_bytes: int | None = None) -> bytes:
        content = super().read(path, start=start, max_bytes=max_bytes)
        if self.growths:
            self.growths -= 1
            with (self.root / path).open("ab") as file:
                file.write(b"+")
        return content


@pytest.mark.parametrize(("growths", "expected"), [(0, b"x"), (1, b"x+"), (2, b"x++")])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, growths: int, expected: bytes
) -> None:
    files = GrowingFiles(tmp_path)
    entry = files.write_atomic("a.md", b"x")
    files.growths = growths
    clock = VersionClock()
    read = read_stable(files, entry, clock=clock, inline_max_bytes=100)
    assert (read.content, read.entry) == (expected, files.entry("a.md"))
    assert isinstance(read, FileRead)
    assert read.version < clock.next()


def test_a_file_that_grows_past_the_limit_becomes_a_reference(tmp_path: Path) -> None:
    files = GrowingFiles(tmp_path)
    entry = files.write_atomic("a.md", b"x" * 10)
    (tmp_path / "a.md").write_bytes(b"y" * 11)
    read = read_stable(files, entry, clock=VersionClock(), inline_max_bytes=10)
    assert (read.content, read.entry.size) == (None, 11)


YEAR_1_NS, YEAR_10000_NS = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9


@pytest.mark.parametrize(
    ("modified_ns", "expected"),
    [
        (0, "1970-01-01T00:00:00.000000+00:00"),
        (-1, "1969-12-31T23:59:59.999999+00:00"),
        (YEAR_1_NS, "0001-01-01T00:00:00.000000+00:00"),
        (YEAR_1_NS - 1, None),
        (YEAR_10000_NS - 1, "9999-12-31T23:59:59.999999+00:00"),
        (YEAR_10000_NS, None),
    ],
)
def test_a_time_that_no_date_can_tell_is_left_out(modified_ns: int, expected: str | None) -> None:
    assert modified_at(modified_ns) == expected


@given(st.integers(-(2**80), 2**80) | st.integers(-(2**63), 2**63))
def test_no_time_of_a_file_system_is_a_fault(modified_ns: int) -> None:
    told = modified_at(modified_ns)
    assert (told is not None) == (YEAR_1_NS <= modified_ns < YEAR_10000_NS)
    assert told is None or datetime.fromisoformat(told).isoformat(timespec="microseconds") == told
