"""Namespaces of the memory tree as its watcher keeps them, and whose a changed path is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from indexers.domain.identity import Namespace
from indexers.settings import VaultRoot
from indexers.vault.tree import namespace_at
from streams.watcher.status import HeldRemovals, ScanReport, StatusFile
from streams.watcher.sync import RootSync

log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class Member:
    """One namespace. `next_scan`: when it is due, by the monotonic clock."""

    root: VaultRoot
    sync: RootSync
    #: Never written: it is where `rescan --confirm-removals` leaves its word.
    status: StatusFile
    next_scan: float = 0.0
    scanned: bool = False
    fault: str | None = None
    held: HeldRemovals | None = None
    confirmation: str | None = None

    async def scan(self) -> None:
        """As `RootSync.scan`; the first one sends every file."""
        self.confirmation = self.status.confirmation()
        report = await self.sync.scan(everything=not self.scanned)
        self.scanned = True
        self.sync.metrics.scan_seconds.observe(report.seconds)
        if report.upserted or report.deleted or report.problems or report.held is not None:
            self._log(report)
        if self.sync.tombstones is not None:
            await self.sync.tombstones.purge(self.root.namespace)
        self.tell_of_held()

    def is_confirmed(self) -> bool:
        """Whether a person let held removals through since the last look."""
        said = self.status.confirmation()
        changed = said != self.confirmation
        self.confirmation = said
        return changed

    def tell_of_held(self) -> None:
        held = self.sync.held
        if held is not None and held != self.held:
            log.error(
                "removals.held",
                root=self.root.name,
                reason=held.reason,
                removed=len(held.paths),
                known=held.known,
                confirm=f"hopline rescan --confirm-removals --root {self.root.name}",
            )
        self.held = held

    def _log(self, report: ScanReport) -> None:
        log.info(
            "vault.scanned",
            root=self.root.name,
            files=report.files,
            upserted=report.upserted,
            deleted=report.deleted,
            held=0 if report.held is None else len(report.held.paths),
            problems=len(report.problems),
            seconds=report.seconds,
        )


def by_namespace(root: str, paths: Iterable[str]) -> tuple[dict[Namespace, list[str]], bool]:
    """Changed paths of each namespace, and whether a folder above them changed."""
    found: defaultdict[Namespace, list[str]] = defaultdict(list)
    above = False
    for path in paths:
        if not path.startswith(f"{root}/"):
            above = True
            continue
        parts = path[len(root) + 1 :].split("/")
        deep = 4 if parts[1:2] == ["team"] else 3
        namespace = namespace_at(parts[:deep]) if len(parts) > deep else None
        if namespace is not None:
            found[namespace].append(path)
        elif len(parts) <= deep:
            above = True
    return dict(found), above
