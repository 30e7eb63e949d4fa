"""Events in line with one root's files: all of them (scan) or the paths that changed (reconcile).

The disk is looked at; what an event said of a path is not believed. Order of every pass: what was known, then
a version for deletions, then the look. So a file that appears meanwhile is always newer than a deletion.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from indexers.ports import FileEntry, VaultFiles, VaultListing
from indexers.settings import VaultRoot
from streams.versions import VersionClock
from streams.watcher.changes import EventFactory
from streams.watcher.gone import is_gone, still_gone
from streams.watcher.guard import HoldReason, RemovalGuard
from streams.watcher.known import KnownDocument, KnownDocuments
from streams.watcher.look import Applied, Look, missing, moves_in
from streams.watcher.manifest import Manifest, Seen, topmost
from streams.watcher.metrics import WatcherMetrics
from streams.watcher.pacing import LIVE_FILES, Pacing, nothing
from streams.watcher.publisher import ChangePublisher
from streams.watcher.reading import BatchReader, FileRead
from streams.watcher.status import HeldRemovals, ScanReport
from streams.watcher.sweep import listed_and_swept
from streams.watcher.tombstones import Tombstones

#: More changed paths than this are cheaper to find by a scan, which also mends what an overflowing queue of
#: the operating system has lost.
BURST_PATHS = 1_000
DELETE_BATCH = 500


@dataclass(slots=True, kw_only=True)
class RootSync:
    """State and steps of one root. Not for two tasks at once."""

    root: VaultRoot
    files: VaultFiles
    known: KnownDocuments
    publisher: ChangePublisher
    clock: VersionClock
    guard: RemovalGuard
    reader: BatchReader
    metrics: WatcherMetrics
    manifest: Manifest = field(default_factory=Manifest)
    held: HeldRemovals | None = None
    tombstones: Tombstones | None = None
    #: Told after each confirmed batch: a long scan is progress, not silence.
    on_batch: Callable[[], object] = bool
    #: None: a bulk goes as fast as the broker takes it.
    pacing: Pacing | None = None
    #: Called while a bulk waits and before each of its portions.
    meanwhile: Callable[[], Awaitable[None]] = nothing

    async def scan(self, *, everything: bool, confirmed: bool = False) -> ScanReport:
        """Compare vault and index. Raises `VaultUnavailable` and `Transient`; then nothing was deleted."""
        started = time.monotonic()
        identity = await asyncio.to_thread(self.files.root_identity)
        documents = await self.known.of(self.root.namespace)
        for document in documents.values():
            self.clock.observe(document.version)
        version = self.clock.next()
        listing = await asyncio.to_thread(listed_and_swept, self.files)
        known = {
            path: Seen(content_hash=d.content_hash) for path, d in documents.items()
        } | self.manifest.files
        look = Look(
            identity=identity,
            version=version,
            origin="scan",
            entries=tuple(e for e in listing.entries if everything or self._differs(e, documents)),
            gone=missing(known, listing),
            known=known,
            problems=listing.problems,
            confirmed=confirmed,
            everything=everything,
        )
        applied = await self._apply(look, vault_is_empty=not listing.entries)
        seconds = time.monotonic() - started
        return applied.report(files=len(listing.entries), seconds=seconds, held=self.held)

    async def reconcile(self, paths: Collection[str]) -> Applied:
        """Look at these paths (identities of files or folders) and all below them."""
        if len(paths) > BURST_PATHS:
            await self.scan(everything=False)
            return Applied()
        identity = await asyncio.to_thread(self.files.root_identity)
        version = self.clock.next()
        listing, gone = await asyncio.to_thread(self._look_at, topmost(paths))
        look = Look(
            identity=identity,
            version=version,
            origin="live",
            entries=tuple(e for e in listing.entries if not self._is_same(e)),
            gone=gone,
            known=self.manifest.files,
            problems=listing.problems,
        )
        return await self._apply(look, vault_is_empty=False)

    async def reconcile_beside(self, paths: Collection[str]) -> None:
        """Called in `meanwhile`: sends a few edited or new files at once.

        What is more than that (a burst, something gone, a move) is left alone: it needs the state after the bulk, and
        a `reconcile` of the same paths must follow that.
        """
        if len(paths) > LIVE_FILES:
            return
        version = self.clock.next()
        listing, gone = await asyncio.to_thread(self._look_at, topmost(paths))
        entries = tuple(e for e in listing.entries if not self._is_same(e))
        if gone or len(entries) > LIVE_FILES:
            return
        known = self.manifest.files
        look = Look(
            identity="", version=version, origin="live", entries=entries, gone={}, known=known, problems=()
        )
        await self._send_upserts(look, {}, Applied())

    def _look_at(self, paths: Collection[str]) -> tuple[VaultListing, dict[str, Seen]]:
        listings = [self.files.listing(path) for path in paths]
        listing = VaultListing(
            entries=tuple(e for found in listings for e in found.entries),
            problems=tuple(p for found in listings for p in found.problems),
        )
        below = {path: self.manifest.files[path] for path in self.manifest.below(paths)}
        return listing, missing(below, listing)

    def _is_same(self, entry: FileEntry) -> bool:
        seen = self.manifest.files.get(entry.path)
        return seen is not None and seen.same_file(entry)

    def _differs(self, entry: FileEntry, documents: Mapping[str, KnownDocument]) -> bool:
        """For repeated scans: not as it was sent, or not as the index has it."""
        document = documents.get(entry.path)
        seen = self.manifest.files.get(entry.path)
        same = document is not None and seen is not None and document.content_hash == seen.content_hash
        return not (same and self._is_same(entry))

    async def _apply(self, look: Look, *, vault_is_empty: bool) -> Applied:
        moves = await asyncio.to_thread(moves_in, look, self.reader)
        if look.origin == "scan":
            self.held = None  # a scan looks at all that is missing and decides anew
        moved = set(moves.values())
        removed = sorted(path for path in look.gone if path not in moved)
        # While removals are held, further ones join them: a tree may vanish burst by burst.
        missing_by_now = len({*removed, *self._held_paths})
        reason = self.guard.hold(
            removed=missing_by_now if removed else 0, known=len(look.known), vault_is_empty=vault_is_empty
        )
        if reason is not None and not look.confirmed:
            self._hold(reason, removed, known=len(look.known))
            removed = []
        applied = Applied(problems=list(look.problems))
        sent = await self._send_upserts(look, moves, applied)
        # The creation is confirmed first: whoever sees the deletion can already find the new document.
        targets = {old: new for new, old in moves.items() if new in sent}
        await self._send_deletions(look, sorted({*removed, *moved}), targets, applied)
        await asyncio.to_thread(self._let_go_of_found)
        return applied

    async def _send_upserts(self, look: Look, moves: Mapping[str, str], applied: Applied) -> set[str]:
        factory = EventFactory(namespace=self.root.namespace)
        entries, more, sent = iter(look.entries), True, set[str]()
        while more:
            room = await self._room(len(look.entries), self.reader.batch_files)
            reads, problems, more = await asyncio.to_thread(self.reader.batch, entries, room)
            applied.problems.extend(problems)
            fresh = [r for r in reads if look.everything or self._is_news(r, look)]
            await self.publisher.publish(
                [factory.upserted(r, origin=look.origin, moved_from=moves.get(r.entry.path)) for r in fresh]
            )
            self.manifest.files.update((r.entry.path, r.seen) for r in reads)
            sent.update(r.entry.path for r in fresh)
            self.metrics.changes.labels(kind="upserted", origin=look.origin).inc(len(fresh))
            self.on_batch()
        applied.upserted = len(sent)
        applied.moved = len(sent & moves.keys())
        return sent

    async def _room(self, records: int, most: int) -> int:
        """How many of a look's records may go now. A bulk leaves room for what others write meanwhile."""
        if self.pacing is None or records <= LIVE_FILES:
            return most
        return await self.pacing.room(most, self.meanwhile)

    def _is_news(self, read: FileRead, look: Look) -> bool:
        """A live event for text that the broker has confirmed is an echo; a scan compares with the index."""
        seen = self.manifest.files.get(read.entry.path)
        return look.origin == "scan" or seen is None or seen.content_hash != read.content_hash

    async def _send_deletions(
        self, look: Look, paths: Iterable[str], targets: Mapping[str, str], applied: Applied
    ) -> None:
        factory = EventFactory(namespace=self.root.namespace)
        still = partial(still_gone, self.files, paths, root=self.root.name, identity=look.identity)
        gone = await asyncio.to_thread(still)
        while gone:
            room = await self._room(len(gone), DELETE_BATCH)
            batch, gone = gone[:room], gone[room:]
            await self.publisher.publish(
                [
                    factory.deleted(p, version=look.version, origin=look.origin, moved_to=targets.get(p))
                    for p in batch
                ]
            )
            for path in batch:
                self.manifest.files.pop(path, None)
            applied.deleted += len(batch)
            self.metrics.changes.labels(kind="deleted", origin=look.origin).inc(len(batch))
            self.on_batch()

    @property
    def _held_paths(self) -> tuple[str, ...]:
        return () if self.held is None else self.held.paths

    def _hold(self, reason: HoldReason, removed: Iterable[str], *, known: int) -> None:
        paths = tuple(sorted({*self._held_paths, *removed}))
        self.held = HeldRemovals(reason=reason, paths=paths, known=known)

    def let_go_of_held(self) -> None:
        """They were confirmed and deleted by someone else; the next scan looks again."""
        for path in self._held_paths:
            self.manifest.files.pop(path, None)
        self.held = None

    def _let_go_of_found(self) -> None:
        """Held files that came back are no longer held."""
        if self.held is not None:
            paths = tuple(path for path in self.held.paths if is_gone(self.files, path))
            self.held = (
                HeldRemovals(reason=self.held.reason, paths=paths, known=self.held.known) if paths else None
            )
