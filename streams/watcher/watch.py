"""One root, watched until told to stop: scan, live changes, rescans, and a root that comes and goes."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

import structlog
from watchfiles import awatch

from indexers.errors import ConfigurationError, HoplineError, VaultUnavailable
from streams.health import Liveness
from streams.settings import WatcherSettings
from streams.watcher.awaited import Ahead, Changes, Found, UndecodableName, next_of
from streams.watcher.look import Applied
from streams.watcher.pacing import Stopped
from streams.watcher.paths import changed_identities
from streams.watcher.status import HeldRemovals, RootState, ScanReport, StatusFile
from streams.watcher.sync import BURST_PATHS, RootSync

log = structlog.get_logger()

#: How often a quiet root is looked at: is it still the folder that is watched?
TICK_MS = 500
#: A burst that doesn't end is read in pieces of so many quiet times.
LONGEST_BURST = 5
RETRY_SECONDS = (0.5, 2.0)
#: Between scans for names that the watching library can't tell; as long as the last scan where that was longer.
NAMES_SECONDS = (3.0, 60.0)


@dataclass(slots=True, kw_only=True)
class RootWatcher:
    """Never raises for what befalls its root: another root's watcher goes on. A bug does raise."""

    sync: RootSync
    settings: WatcherSettings
    status: StatusFile
    liveness: Liveness
    stop: asyncio.Event
    on_first_look: Callable[[], None]
    _last_scan: ScanReport | None = None
    _fault: str | None = None
    _confirmation: str | None = None
    _told: HeldRemovals | None = None

    @property
    def name(self) -> str:
        return self.sync.root.name

    async def run(self) -> None:
        while not self.stop.is_set():
            try:
                await self._watch()
            except UndecodableName:
                await self._pause(self._until_next_look())
                continue
            except VaultUnavailable as exc:
                self._down("unavailable", exc)
            except Stopped:
                continue
            except ConfigurationError:
                raise
            except (HoplineError, OSError) as exc:
                self._down("failed", exc)
            except Exception as exc:
                exc.add_note(f"while watching the vault {self.name}")
                raise
            await self._pause(random.uniform(*RETRY_SECONDS))  # noqa: S311 - jitter
        self._tell("stopped")

    async def _watch(self) -> None:
        """Until stopped or the root is lost. Watching begins before the scan, so nothing falls between."""
        identity = await asyncio.to_thread(self.sync.files.root_identity)
        root = await asyncio.to_thread(os.path.realpath, self.sync.root.path)
        quiet = self.settings.debounce_ms
        changes = awatch(
            root,
            watch_filter=None,
            debounce=quiet * LONGEST_BURST,
            step=quiet,
            stop_event=self.stop,
            rust_timeout=TICK_MS,
            yield_on_timeout=True,
            force_polling=self.settings.force_polling,
            ignore_permission_denied=True,
        )
        async with aclosing(changes):
            ahead = Ahead(lambda: self._next_of(changes))
            try:
                await self._follow(ahead, root, identity)
            finally:
                await ahead.close()

    async def _follow(self, ahead: Ahead, root: str, identity: str) -> None:
        if not await self._begins(ahead):
            return
        beside: set[str] = set()
        self.sync.meanwhile = lambda: self._look_beside(ahead, root, beside)
        next_scan = await self._scan()
        while (found := await ahead.next()) is not None:
            self._heed_confirmation()
            if await asyncio.to_thread(self.sync.files.root_identity) != identity:
                msg = f"another folder stands at {self.sync.root.path} now"
                raise VaultUnavailable(msg)
            paths = [*beside, *(path for _, path in found)]
            beside.clear()
            await self._reconcile(root, paths)
            if time.monotonic() >= next_scan:
                next_scan = await self._scan()

    async def _look_beside(self, ahead: Ahead, root: str, beside: set[str]) -> None:
        """In the middle of a bulk: a few edits go at once; all that changed is looked at again after it."""
        self._came_round()
        paths = {path for _, path in ahead.arrived()}
        beside |= paths
        if 0 < len(paths) <= BURST_PATHS:
            await self.sync.reconcile_beside(await asyncio.to_thread(changed_identities, root, paths))

    async def _begins(self, ahead: Ahead) -> bool:
        """False once told to stop. A scan per round, even where no watch lives as long as that."""
        try:
            return await ahead.next() is not None
        except UndecodableName:
            await self._scan()
            raise

    async def _next_of(self, changes: Changes) -> Found | None:
        try:
            return await next_of(changes)
        except UndecodableName:
            self.sync.metrics.undecodable.labels(root=self.name).inc()
            log.warning("change.undecodable", root=self.name, rescan_in=self._until_next_look())
            raise

    def _until_next_look(self) -> float:
        shortest, longest = NAMES_SECONDS
        last = 0.0 if self._last_scan is None else self._last_scan.seconds
        return min(max(shortest, last), longest)

    async def _scan(self) -> float:
        """The time of the next one. The first of a process sends every file; ingest skips the unchanged."""
        self._tell("scanning")
        self._confirmation = self.status.confirmation()
        report = await self.sync.scan(everything=self._last_scan is None)
        self._last_scan, self._fault = report, None
        self.on_first_look()
        self._measure(report)
        log.info(
            "vault.scanned",
            root=self.name,
            files=report.files,
            upserted=report.upserted,
            moved=report.moved,
            deleted=report.deleted,
            held=0 if report.held is None else len(report.held.paths),
            problems=len(report.problems),
            seconds=report.seconds,
        )
        await self._purge()
        self._tell("watching")
        return time.monotonic() + self.settings.rescan_seconds * random.uniform(0.9, 1.1)  # noqa: S311 - jitter

    async def _purge(self) -> None:
        if self.sync.tombstones is not None:
            purged = await self.sync.tombstones.purge(self.sync.root.namespace)
            if purged:
                log.info("tombstones.purged", root=self.name, tombstones=purged)

    async def _reconcile(self, root: str, paths: list[str]) -> None:
        self._came_round()
        changed = await asyncio.to_thread(changed_identities, root, paths) if paths else set()
        if not changed:
            return
        applied = await self.sync.reconcile(changed)
        if applied != Applied():
            log.info(
                "vault.reconciled",
                root=self.name,
                upserted=applied.upserted,
                moved=applied.moved,
                deleted=applied.deleted,
                problems=len(applied.problems),
            )
        self._tell("watching")

    def _heed_confirmation(self) -> None:
        if self.sync.held is not None:
            confirmation = self.status.confirmation()
            if confirmation != self._confirmation:
                self._confirmation = confirmation
                self.sync.let_go_of_held()
                self._tell("watching")

    def _tell_of_held(self, held: HeldRemovals) -> None:
        log.error(
            "removals.held",
            root=self.name,
            reason=held.reason,
            removed=len(held.paths),
            known=held.known,
            confirm=f"hopline rescan --confirm-removals --root {self.name}",
        )

    def _measure(self, report: ScanReport) -> None:
        self.sync.metrics.scan_seconds.observe(report.seconds)
        self.sync.metrics.count_problems(self.name, report.problems)

    def _came_round(self) -> None:
        self.liveness.moved()
        self.sync.metrics.progress.labels(root=self.name).set_to_current_time()

    def _down(self, state: RootState, fault: Exception) -> None:
        """Told once, not at every try."""
        if str(fault) != self._fault:
            self._fault = str(fault)
            log.error("vault.lost", root=self.name, state=state, reason=self._fault)
        self.sync.metrics.failures.labels(root=self.name).inc()
        self._tell(state)
        self.on_first_look()

    def _tell(self, state: RootState) -> None:
        self._came_round()
        held, files, metrics = self.sync.held, len(self.sync.manifest.files), self.sync.metrics
        if held is not None and held != self._told:
            self._tell_of_held(held)
        self._told = held
        metrics.root_up.labels(root=self.name).set(state in ("scanning", "watching"))
        metrics.files.labels(root=self.name).set(files)
        metrics.held.labels(root=self.name).set(0 if held is None else len(held.paths))
        try:
            self.status.write(state, files=files, detail=self._fault, last_scan=self._last_scan, held=held)
        except OSError as exc:
            log.warning("status.not_written", root=self.name, reason=str(exc))

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.stop.wait(), seconds)
        except TimeoutError:
            return
