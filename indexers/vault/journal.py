"""JSON lines under `.hopline/` of a vault: what its notes can't tell and a rebuild must know. Blocking.

Append-only but for erasures, each line with an `event_id`, on the disk before `append` returns. The piece that a
crash left of a last line is cut off: nobody was told that it stands, so its event comes again. No piece of a JSON
object is one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from indexers.vault.durable import sync_folder

FOLDER: Final = ".hopline"
_STEP_BYTES: Final = 1 << 20


class Journal:
    """One file of one vault root. Several processes may append at once; each event stands in it once."""

    def __init__(self, root: Path, name: str) -> None:
        self.folder = root / FOLDER
        self.path = self.folder / name

    def append(self, lines: Mapping[str, bytes]) -> int:
        """Event id → its JSON, in order; the number of lines that were not there yet. Raises OSError.

        The root must be there: a missing one is an unmounted one, and nothing is made in its place.
        """
        self._make_folder()
        fresh = not os.path.lexists(self.path)
        with self._opened(os.O_RDWR | os.O_CREAT | os.O_APPEND) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _heal(file.fileno())
            present = _ids(_lines_of(file.fileno()))
            added = [line for event_id, line in lines.items() if event_id not in present]
            if added:
                _write_all(file.fileno(), b"".join(line + b"\n" for line in added))
            # Also what an earlier try wrote and couldn't bring to the disk.
            os.fsync(file.fileno())
        if fresh:
            sync_folder(self.folder)
        return len(added)

    def erase(self, is_unwanted: Callable[[bytes], bool]) -> int:
        """Overwrite the lines where they stand, all but the event's id; how many. No file: 0. Raises OSError.

        In place, because others hold the file open to append to it, and because the bytes shall be gone from the disk.
        With its id there an event that is delivered again is no news, and `erased` tells that it has no word any more.
        """
        try:
            file = self._opened(os.O_RDWR)
        except FileNotFoundError:
            return 0
        erased = 0
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for start, line in _places_of(file.fileno()):
                event_id = _id_of(line)
                if event_id is not None and is_unwanted(line):
                    _overwrite(file.fileno(), _fence(event_id).ljust(len(line))[: len(line)], start)
                    erased += 1
            os.fsync(file.fileno())
        return erased

    def erased(self) -> set[str]:
        """Ids of events whose lines were erased. Raises OSError."""
        return {_id_of(line) or "" for line in self._whole_lines() if _is_fence(line)}

    def lines(self) -> Iterator[bytes]:
        """Whole lines in the order written, erased ones left out; nothing where there is no file. Raises OSError."""
        return (line for line in self._whole_lines() if not _is_fence(line))

    def _whole_lines(self) -> Iterator[bytes]:
        try:
            file = self._opened(os.O_RDONLY)
        except FileNotFoundError:
            return
        with file:
            yield from _lines_of(file.fileno())

    def _opened(self, flags: int) -> BinaryIO:
        """A pipe of this name would hold who opens it until somebody writes: it is no file, and refused at once."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        handle = os.open(self.path, flags, 0o666)
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return os.fdopen(handle, "rb" if flags & os.O_ACCMODE == os.O_RDONLY else "rb+")
        os.close(handle)
        raise OSError(errno.EINVAL, "no file", str(self.path))

    def _make_folder(self) -> None:
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir()
            sync_folder(self.folder.parent)
        if self.folder.is_symlink() or not self.folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "no folder of the vault", str(self.folder))


def _heal(handle: int) -> None:
    """End the last line where only its line break is missing (an editor's doing), else cut it off."""
    end = _whole_bytes(handle)
    rest = os.pread(handle, os.fstat(handle).st_size - end, end)
    if _id_of(rest) is not None:
        _write_all(handle, b"\n")
    elif rest:
        os.ftruncate(handle, end)


def _whole_bytes(handle: int) -> int:
    """Up to and with the last line break."""
    end = os.fstat(handle).st_size
    while end > 0:
        start = max(0, end - _STEP_BYTES)
        at = os.pread(handle, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0


def _lines_of(handle: int) -> Iterator[bytes]:
    rest, at = b"", 0
    while piece := os.pread(handle, _STEP_BYTES, at):
        at += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
    if _id_of(rest) is not None:
        yield rest


def _places_of(handle: int) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of every line, without its break."""
    rest, start, at = b"", 0, 0
    while piece := os.pread(handle, _STEP_BYTES, at):
        at += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield start, line
            start += len(line) + 1
    if rest:
        yield start, rest


def _overwrite(handle: int, data: bytes, at: int) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(handle, data[done:], at + done)


def _ids(lines: Iterator[bytes]) -> set[str]:
    return {event_id for line in lines if (event_id := _id_of(line)) is not None}


def _id_of(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_Line).event_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _fence(event_id: str) -> bytes:
    return msgspec.json.encode({"event_id": event_id, "erased": True})


def _is_fence(line: bytes) -> bool:
    event_id = _id_of(line)
    return event_id is not None and line.rstrip() == _fence(event_id)


def _write_all(handle: int, data: bytes) -> None:
    at = 0
    while at < len(data):
        at += os.write(handle, data[at:])


class _Line(msgspec.Struct):
    event_id: str
