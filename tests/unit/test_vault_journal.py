"""The journal of a vault: every event once, on the disk, whatever a crash left of the last line."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from indexers.vault.journal import Journal

ONE = b'{"event_id":"1","x":"a"}'
LONG = '{"event_id":"2","reason":"한 마디 더 하자면"}'.encode()
TWO = '{"event_id":"2","x":"한"}'.encode()


def test_each_event_stands_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "curation.jsonl")
    assert list(journal.lines()) == []
    assert journal.append({"1": ONE}) == 1
    assert journal.append({"1": ONE, "2": TWO}) == 1
    assert journal.append({"2": TWO}) == 0
    assert list(journal.lines()) == [ONE, TWO]
    assert (tmp_path / ".hopline/curation.jsonl").read_bytes() == ONE + b"\n" + TWO + b"\n"


@pytest.mark.parametrize(
    ("left", "lines"),
    [
        (b"", [TWO]),
        (ONE[:-3], [TWO]),
        (ONE + b"\n" + TWO[:9], [ONE, TWO]),
        (ONE + b"\n" + TWO[:-2], [ONE, TWO]),
        # Somebody's editor took the last line break away: the line is whole.
        (ONE, [ONE, TWO]),
        (ONE + b"\n" + TWO, [ONE, TWO]),
        (b"\n\n" + ONE + b"\n\n", [ONE, TWO]),
        # A line that is none stays: it is somebody's, and whole.
        (b"what is this\n" + ONE + b"\n", [b"what is this", ONE, TWO]),
    ],
)
def test_a_torn_last_line_is_healed(tmp_path: Path, left: bytes, lines: list[bytes]) -> None:
    journal = Journal(tmp_path, "curation.jsonl")
    journal.folder.mkdir()
    journal.path.write_bytes(left)
    journal.append({"2": TWO})
    assert list(journal.lines()) == lines


def test_long_journals_are_read_in_pieces(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "curation.jsonl")
    lines = {str(n): b'{"event_id":"%d","x":"%s"}' % (n, b"y" * 100_000) for n in range(30)}
    assert journal.append(lines) == 30
    journal.path.write_bytes(journal.path.read_bytes() + b'{"event_id":"torn"' + b"z" * 2_000_000)
    assert list(journal.lines()) == list(lines.values())
    assert journal.append(lines) == 0
    assert list(journal.lines()) == list(lines.values())


def test_two_writers_at_once(tmp_path: Path) -> None:
    def write(numbers: range) -> None:
        for n in numbers:
            Journal(tmp_path, "c.jsonl").append({str(n): b'{"event_id":"%d"}' % n})

    threads = [threading.Thread(target=write, args=[range(start, 40)]) for start in (0, 0, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Journal(tmp_path, "c.jsonl").lines()) == sorted(b'{"event_id":"%d"}' % n for n in range(40))


def test_nothing_is_made_where_the_vault_is_away_or_leads_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Journal(tmp_path / "unmounted", "c.jsonl").append({"1": ONE})
    assert list(tmp_path.iterdir()) == []
    other = tmp_path / "other"
    other.mkdir()
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / ".hopline").symlink_to(other)
    with pytest.raises(NotADirectoryError):
        Journal(vault, "c.jsonl").append({"1": ONE})
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_and_never_waited_for(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    """A pipe of that name would hold its reader, and with it an agent, until somebody wrote into it."""
    journal = Journal(tmp_path, "relations.jsonl")
    journal.folder.mkdir()
    make(journal.path)
    said: list[str] = []

    def read() -> None:
        try:
            said.extend(map(str, journal.lines()))
        except OSError as exc:
            said.append(type(exc).__name__)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(5)
    assert said == ["OSError"]
    with pytest.raises(OSError, match=r"no file|directory"):
        journal.append({"1": ONE})


def test_erased_lines_are_overwritten_where_they_stand(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "curation.jsonl")
    journal.append({"1": ONE, "2": LONG, "3": b'{"event_id":"3","x":1}'})
    inode = journal.path.stat().st_ino
    assert journal.erase(lambda line: "한".encode() in line) == 1
    assert list(journal.lines()) == [ONE, b'{"event_id":"3","x":1}']
    fence = b'{"event_id":"2","erased":true}'.ljust(len(LONG))
    assert journal.path.read_bytes() == ONE + b"\n" + fence + b'\n{"event_id":"3","x":1}\n'
    assert journal.path.stat().st_ino == inode
    assert journal.erase(lambda line: "한".encode() in line) == 0
    # The event comes again: it is no news, and it has no word any more.
    assert journal.append({"1": ONE, "2": LONG}) == 0
    assert list(journal.lines()) == [ONE, b'{"event_id":"3","x":1}']
    assert journal.erased() == {"2"}


def test_nothing_is_erased_from_a_journal_that_is_not_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "curation.jsonl")
    assert (journal.erase(lambda _: True), journal.erased()) == (0, set())
    assert not (tmp_path / ".hopline").exists()


def test_long_lines_are_erased_piece_by_piece(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "curation.jsonl")
    lines = {str(n): b'{"event_id":"%d","x":"%s"}' % (n, b"y" * 700_000) for n in range(4)}
    journal.append(lines)
    assert journal.erase(lambda line: b'"event_id":"1"' in line or b'"event_id":"3"' in line) == 2
    assert list(journal.lines()) == [lines["0"], lines["2"]]
