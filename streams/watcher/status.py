"""What `hopline status` says of each root: one JSON file per root under the data folder, replaced whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from indexers.ports import VaultProblem
from streams.events import now_iso
from streams.watcher.guard import HoldReason

#: Most paths named in the file; the counts beside them are exact.
SAMPLE = 50
#: Of the memory tree in metrics, logs and `hopline status`. No root's name holds a blank.
TREE_NAME = "memory tree"

RootState = Literal["scanning", "watching", "unavailable", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRemovals:
    """Deletions that wait for a person."""

    reason: HoldReason
    paths: tuple[str, ...]
    known: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """One comparison of vault and index."""

    finished_at: str
    seconds: float
    files: int
    upserted: int
    moved: int
    deleted: int
    problems: tuple[VaultProblem, ...]
    held: HeldRemovals | None


class StatusFile:
    """Writes `{folder}/{root}.json`."""

    def __init__(self, folder: Path, root: str) -> None:
        self.path = folder / f"{root}.json"
        self._root = root

    @property
    def _confirmation(self) -> Path:
        return self.path.with_suffix(".confirmed")

    def note_confirmation(self) -> None:
        """Tell a running watcher, another process, that a person has let the held removals through."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._confirmation.write_text(now_iso())

    def confirmation(self) -> str | None:
        """Another text after each confirmation."""
        try:
            return self._confirmation.read_text()
        except OSError:
            return None

    def write(
        self,
        state: RootState,
        *,
        files: int,
        detail: str | None = None,
        last_scan: ScanReport | None = None,
        held: HeldRemovals | None = None,
    ) -> None:
        content: dict[str, Any] = {
            "root": self._root,
            "state": state,
            "detail": detail,
            "files": files,
            "last_scan": None if last_scan is None else _scan(last_scan),
            "held_removals": None if held is None else self._held(held),
            "updated_at": now_iso(),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1))
        temporary.replace(self.path)

    def _held(self, held: HeldRemovals) -> dict[str, Any]:
        return {
            "reason": held.reason,
            "count": len(held.paths),
            "known": held.known,
            "paths": list(held.paths[:SAMPLE]),
            "confirm": f"hopline rescan --confirm-removals --root {self._root}",
        }


def read_statuses(folder: Path) -> list[dict[str, Any]]:
    """Every root's last word, by name; an unreadable file is left out."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(json.loads(path.read_text()))
        except (OSError, ValueError):
            continue
    return found


def _scan(report: ScanReport) -> dict[str, Any]:
    content = asdict(report)
    del content["held"]
    content["problems"] = {"count": len(report.problems), "sample": _sample(report.problems)}
    return content


def _sample(problems: Iterable[VaultProblem]) -> list[dict[str, str]]:
    return [{"path": p.path, "reason": p.reason} for p in list(problems)[:SAMPLE]]
