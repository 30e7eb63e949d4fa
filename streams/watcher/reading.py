"""Reading files for events: whole, large ones by reference, again when they change while they are read."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from indexers.domain.hashing import content_hash, written_hash
from indexers.errors import VaultUnavailable
from indexers.ports import FileEntry, ProblemReason, VaultFiles, VaultProblem
from streams.versions import VersionClock
from streams.watcher.manifest import Seen

#: A file still growing after so many looks is sent as it is: its next change is an event of its own.
STABLE_TRIES = 5
STABLE_WAIT_SECONDS = 0.02
PIECE_BYTES = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """One file as read. `version` was drawn before; `content` is None above the inline limit."""

    entry: FileEntry
    version: int
    content_hash: str
    content: bytes | None
    read_at_ns: int

    @property
    def seen(self) -> Seen:
        return Seen.of(self.entry, self.content_hash, read_at_ns=self.read_at_ns)


def read_stable(
    files: VaultFiles, entry: FileEntry, *, clock: VersionClock, inline_max_bytes: int
) -> FileRead:
    """Bytes that belong together: read again while size or time change. Raises what `read` raises."""
    for attempt in range(STABLE_TRIES):
        if attempt:
            time.sleep(STABLE_WAIT_SECONDS)
            entry = files.entry(entry.path)
        version = clock.next()
        content_hash, content, size = _read(files, entry, inline_max_bytes)
        after = files.entry(entry.path)
        if after == entry and size == entry.size:
            break
        entry = after
    return FileRead(
        entry=entry, version=version, content_hash=content_hash, content=content, read_at_ns=time.time_ns()
    )


def _read(files: VaultFiles, entry: FileEntry, inline_max_bytes: int) -> tuple[str, bytes | None, int]:
    if entry.size <= inline_max_bytes:
        # One byte more than the limit tells whether it grew past it.
        content = files.read(entry.path, max_bytes=inline_max_bytes + 1)
        if len(content) <= inline_max_bytes:
            return content_hash(content), content, len(content)
    digest, size = hashlib.sha256(), 0
    while piece := files.read(entry.path, start=size, max_bytes=PIECE_BYTES):
        digest.update(piece)
        size += len(piece)
    return written_hash(digest.hexdigest()), None, size


@dataclass(slots=True)
class BatchReader:
    """Reads entries in batches bounded by count and bytes; what can't be read is a problem, not an end."""

    files: VaultFiles
    clock: VersionClock
    inline_max_bytes: int
    batch_files: int = 500
    batch_bytes: int = 16_777_216

    def batch(
        self, entries: Iterator[FileEntry], most: int | None = None
    ) -> tuple[list[FileRead], list[VaultProblem], bool]:
        """The next batch (of at most `most` files), its problems, and whether there may be more. Blocks."""
        files = self.batch_files if most is None else min(most, self.batch_files)
        reads: list[FileRead] = []
        problems: list[VaultProblem] = []
        held = 0
        for entry in entries:
            read = self.read(entry)
            if isinstance(read, FileRead):
                reads.append(read)
                held += len(read.content or b"")
            elif read is not None:
                problems.append(VaultProblem(path=entry.path, reason=read))
            if len(reads) >= files or held >= self.batch_bytes:
                return reads, problems, True
        return reads, problems, False

    def read(self, entry: FileEntry) -> FileRead | ProblemReason | None:
        """None: the file is gone since it was listed, and an event or the next scan tells so."""
        try:
            return read_stable(self.files, entry, clock=self.clock, inline_max_bytes=self.inline_max_bytes)
        except FileNotFoundError:
            return None
        except VaultUnavailable:
            raise
        except ValueError:
            return "outside_root"
        except OSError:
            return "unreadable_file"

    def states(self, entries: Iterable[FileEntry]) -> dict[str, Seen]:
        """State by path, contents let go one by one: for matching moves."""
        reads = (self.read(entry) for entry in entries)
        return {read.entry.path: read.seen for read in reads if isinstance(read, FileRead)}
