"""What the watcher has seen and the broker has confirmed, by path. In memory: a restart scans again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from indexers.ports import FileEntry

#: A file may be written again within one tick of the file system's clock without changing its times. What was
#: read this soon after its modification is therefore never taken as unchanged without reading it.
RACY_NS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """State of a file when it was last sent. All but the hash is None where only the index tells of it."""

    content_hash: str
    size: int | None = None
    modified_ns: int | None = None
    inode: int | None = None
    racy: bool = False

    @classmethod
    def of(cls, entry: FileEntry, content_hash: str, *, read_at_ns: int) -> Seen:
        return cls(
            content_hash=content_hash,
            size=entry.size,
            modified_ns=entry.modified_ns,
            inode=entry.inode,
            racy=read_at_ns - entry.modified_ns < RACY_NS,
        )

    def same_file(self, entry: FileEntry) -> bool:
        """Same inode, size and time of modification: it may have another name, but no other text."""
        own = (self.inode, self.size, self.modified_ns)
        return own == (entry.inode, entry.size, entry.modified_ns) and not self.racy


@dataclass(slots=True)
class Manifest:
    files: dict[str, Seen] = field(default_factory=dict)

    def below(self, paths: Collection[str]) -> Iterator[str]:
        """Known paths that are one of `paths` or lie below one (a folder's removal names only the folder)."""
        wanted = set(paths)
        yield from (path for path in self.files if covers(wanted, path))


def covers(wanted: Collection[str], path: str) -> bool:
    """True where `path` or one of its folders is in `wanted`."""
    while path:
        if path in wanted:
            return True
        path = path.rpartition("/")[0]
    return False


def topmost(paths: Collection[str]) -> list[str]:
    """Without those that lie below another one, in order."""
    wanted = set(paths)
    return sorted(path for path in wanted if not covers(wanted, path.rpartition("/")[0]))
