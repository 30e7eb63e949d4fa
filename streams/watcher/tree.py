"""The memory tree, watched as a whole: one watch of the operating system, one loop, however many namespaces.

Each namespace is compared and reconciled like a root of its own (`RootSync`), so that one whose folder is away or
whose removals are held stops no other. A namespace whose folder goes as a whole is waited for, as a root is.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from watchfiles import awatch

from indexers.domain.identity import Namespace
from indexers.errors import ConfigurationError, HoplineError, VaultUnavailable
from indexers.settings import VaultRoot
from indexers.vault.tree import VaultTree, make_folder, place_of
from streams.health import Liveness
from streams.settings import WatcherSettings
from streams.watcher.awaited import UndecodableName, next_of
from streams.watcher.members import Member, by_namespace
from streams.watcher.pacing import Stopped
from streams.watcher.paths import changed_identities
from streams.watcher.status import TREE_NAME, RootState, StatusFile
from streams.watcher.sync import RootSync
from streams.watcher.watch import LONGEST_BURST, RETRY_SECONDS, TICK_MS

log = structlog.get_logger()

#: Between looks for new folders, for those that no change tells of.
DISCOVER_SECONDS: Final = 5.0
#: Namespaces at once: most of their time is waiting for the disk, the store and the broker.
_AT_ONCE: Final = 4
#: Scans before the live changes are looked at again.
_SCANS_A_ROUND: Final = 20
_AGAIN_SECONDS: Final = 5.0


@dataclass(slots=True, kw_only=True)
class TreeWatcher:
    """Never raises for what befalls the tree or a namespace of it. A bug does raise."""

    tree: VaultTree
    folder: Path
    open_sync: Callable[[VaultRoot], RootSync]
    settings: WatcherSettings
    status_folder: Path
    liveness: Liveness
    stop: asyncio.Event
    on_first_look: Callable[[], None]
    _members: dict[Namespace, Member] = field(default_factory=dict)
    _discover_at: float = 0.0
    _fault: str | None = None
    _told: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        return TREE_NAME

    async def run(self) -> None:
        while not self.stop.is_set():
            try:
                await self._watch()
            except UndecodableName:
                log.warning("change.undecodable", root=TREE_NAME)
            except VaultUnavailable as exc:
                self._down("unavailable", exc)
            except Stopped:
                continue
            except ConfigurationError:
                raise
            except (HoplineError, OSError) as exc:
                self._down("failed", exc)
            await self._pause(random.uniform(*RETRY_SECONDS))  # noqa: S311 - jitter
        self._tell("stopped")

    async def _watch(self) -> None:
        """Until stopped or the tree is lost. Watching begins before the first look, so nothing falls between.

        What a watch before this one had, and what came between the two, nobody told of: all is compared again.
        """
        identity = await asyncio.to_thread(self._made_folder)
        root = await asyncio.to_thread(os.path.realpath, self.folder)
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
            self._discover_at = 0.0
            self._scan_all()
            while (found := await next_of(changes)) is not None:
                if await asyncio.to_thread(self._made_folder) != identity:
                    msg = f"another folder stands at {self.folder} now"
                    raise VaultUnavailable(msg)
                await self._round(root, [path for _, path in found])

    async def _round(self, root: str, paths: Sequence[str]) -> None:
        changed, news = by_namespace(root, paths)
        if news or any(ns not in self._members for ns in changed) or time.monotonic() >= self._discover_at:
            await self._discover()
        known = {ns: found for ns, found in changed.items() if ns in self._members}
        await self._each(
            [self._members[ns] for ns in known],
            lambda member: self._reconcile(root, member, known[member.root.namespace]),
        )
        await self._scan_due()
        self._fault = None
        self._tell("watching")
        self.on_first_look()

    async def _discover(self) -> None:
        """Folders that came are scanned soon; those that went are watched no longer, and their rows stay."""
        roots = {root.namespace: root for root in await asyncio.to_thread(self.tree.found)}
        for namespace in self._members.keys() - roots.keys():
            log.warning("namespace.gone", root=self._members.pop(namespace).root.name)
        for namespace in roots.keys() - self._members.keys():
            root = roots[namespace]
            self._members[namespace] = Member(
                root=root, sync=self.open_sync(root), status=StatusFile(self.status_folder, root.name)
            )
        self._discover_at = time.monotonic() + DISCOVER_SECONDS

    async def _scan_due(self) -> None:
        now = time.monotonic()
        for member in self._members.values():
            if member.sync.held is not None and member.is_confirmed():
                member.sync.let_go_of_held()
        due = [member for member in self._members.values() if member.next_scan <= now]
        await self._each(due[:_SCANS_A_ROUND], self._scan)

    async def _scan(self, member: Member) -> None:
        pause = self.settings.rescan_seconds * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
        await member.scan()
        member.next_scan = time.monotonic() + pause

    async def _reconcile(self, root: str, member: Member, paths: Iterable[str]) -> None:
        if not member.scanned:
            return  # its first scan comes, and sees all
        folder = f"{root}/{'/'.join(place_of(member.root.namespace))}"
        identities = await asyncio.to_thread(changed_identities, folder, paths)
        if identities:
            await member.sync.reconcile(identities)
            member.tell_of_held()

    async def _each(self, members: Sequence[Member], work: Callable[[Member], Awaitable[None]]) -> None:
        """A fault of one namespace's folder is its own; one of a service ends the round."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(member: Member) -> None:
            async with places:
                try:
                    await work(member)
                    member.fault = None
                except (VaultUnavailable, OSError) as exc:
                    self._lost(member, exc)
                self.liveness.moved()

        results = await asyncio.gather(*(one(member) for member in members), return_exceptions=True)
        for fault in results:
            if isinstance(fault, BaseException):
                raise fault

    def _lost(self, member: Member, fault: Exception) -> None:
        if str(fault) != member.fault:
            member.fault = str(fault)
            log.error("vault.lost", root=member.root.name, state="unavailable", reason=member.fault)
        member.sync.metrics.failures.labels(root=TREE_NAME).inc()
        member.next_scan = time.monotonic() + _AGAIN_SECONDS

    def _scan_all(self) -> None:
        for member in self._members.values():
            member.next_scan = 0.0

    def _made_folder(self) -> str:
        """Its identity. Raises VaultUnavailable: where its parent isn't there, nothing is made."""
        try:
            make_folder(self.folder, ())
            info = self.folder.stat()
        except OSError as exc:
            msg = f"the memory tree {self.folder} can't be read: {exc.strerror}"
            raise VaultUnavailable(msg) from exc
        return f"{info.st_dev}:{info.st_ino}"

    def _down(self, state: RootState, fault: Exception) -> None:
        """Told once, not at every try."""
        if str(fault) != self._fault:
            self._fault = str(fault)
            log.error("vault.lost", root=TREE_NAME, state=state, reason=self._fault)
        self._tell(state)
        self.on_first_look()

    def _tell(self, state: RootState) -> None:
        self.liveness.moved()
        members = list(self._members.values())
        files = sum(len(member.sync.manifest.files) for member in members)
        held = [m.root.name for m in members if m.sync.held is not None]
        lost = [m.root.name for m in members if m.fault is not None]
        self._measure(members, state, files=files)
        detail = self._fault
        for what, names in (("removals are held in", held), ("can't be read:", lost)):
            if names:
                detail = f"{detail + '; ' if detail else ''}{what} {', '.join(names[:10])}"
        told = (state, files, len(members), detail)
        if told == self._told:
            return
        self._told = told
        try:
            StatusFile(self.status_folder, TREE_NAME).write(state, files=files, detail=detail)
        except OSError as exc:
            log.warning("status.not_written", root=TREE_NAME, reason=str(exc))

    def _measure(self, members: Sequence[Member], state: RootState, *, files: int) -> None:
        if not members:
            return
        metrics = members[0].sync.metrics
        metrics.root_up.labels(root=TREE_NAME).set(state in ("scanning", "watching"))
        metrics.files.labels(root=TREE_NAME).set(files)
        held = (m.sync.held for m in members)
        metrics.held.labels(root=TREE_NAME).set(sum(len(one.paths) for one in held if one is not None))
        metrics.progress.labels(root=TREE_NAME).set_to_current_time()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.stop.wait(), seconds)
        except TimeoutError:
            return
