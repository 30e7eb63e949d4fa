"""What one pass over a root found, and what it sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from indexers.ports import FileEntry, VaultListing, VaultProblem
from streams.watcher.changes import Origin
from streams.watcher.manifest import Seen, covers


@dataclass(slots=True, kw_only=True)
class Applied:
    """What one pass sent."""

    upserted: int = 0
    moved: int = 0
    deleted: int = 0
    problems: list[VaultProblem] = field(default_factory=list)


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
