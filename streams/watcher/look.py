"""What one pass over a root found, and what it sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from indexers.ports import FileEntry, VaultListing, VaultProblem
from streams.events import now_iso
from streams.watcher.changes import Origin
from streams.watcher.manifest import Seen, covers
from streams.watcher.moves import match_moves
from streams.watcher.reading import BatchReader
from streams.watcher.status import HeldRemovals, ScanReport


@dataclass(slots=True, kw_only=True)
class Applied:
    """What one pass sent."""

    upserted: int = 0
    moved: int = 0
    deleted: int = 0
    problems: list[VaultProblem] = field(default_factory=list)

    def report(self, *, files: int, seconds: float, held: HeldRemovals | None) -> ScanReport:
        return ScanReport(
            finished_at=now_iso(),
            seconds=round(seconds, 3),
            files=files,
            upserted=self.upserted,
            moved=self.moved,
            deleted=self.deleted,
            problems=tuple(sorted(self.problems, key=lambda p: (p.path, p.reason))),
            held=held,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one pass found on disk, against what was known."""

    identity: str
    version: int
    origin: Origin
    entries: tuple[FileEntry, ...]
    gone: Mapping[str, Seen]
    known: Mapping[str, Seen]
    problems: tuple[VaultProblem, ...]
    confirmed: bool = False
    #: Send also what was sent before with the same text (the hash gate of ingest decides).
    everything: bool = False


def missing(known: Mapping[str, Seen], listing: VaultListing) -> dict[str, Seen]:
    """What is known and was not found, unless it may be there and only can't be seen."""
    found = {entry.path for entry in listing.entries}
    hidden = {problem.path for problem in listing.problems if problem.hides_content}
    return {path: seen for path, seen in known.items() if path not in found and not covers(hidden, path)}


def moves_in(look: Look, reader: BatchReader) -> dict[str, str]:
    """New path → former path. Blocking: what inode and times don't tell is read."""
    added = [e for e in look.entries if e.path not in look.known]
    if not look.gone or not added:
        return {}
    by_inode = {seen.inode: seen for seen in look.gone.values() if seen.inode is not None}
    states, unread = {}, []
    for entry in added:
        seen = by_inode.get(entry.inode)
        if seen is not None and seen.same_file(entry):
            states[entry.path] = seen
        else:
            unread.append(entry)
    return match_moves(look.gone, states | reader.states(unread))
