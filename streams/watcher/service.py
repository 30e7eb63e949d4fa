"""The watcher's process: every root, its health page, and the one-off rescan. Wiring only."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from indexers.errors import ConfigurationError, HoplineError, Transient
from indexers.opensearch.open import gate_at
from indexers.process_metrics import process_registry
from indexers.settings import IndexingSettings, OpenSearchSettings, VaultRoot
from indexers.vault.local import LocalVaultFiles
from indexers.vault.roots import chosen_roots, require_distinct
from indexers.vault.tree import VaultTree
from streams.admin import ensure_topics
from streams.health import Liveness, Readiness, Verdict, serve_health
from streams.producer import EventProducer
from streams.settings import KafkaSettings, TracingSettings, WatcherSettings
from streams.topics import Topics
from streams.tracing import open_tracing
from streams.versions import VersionClock
from streams.watcher.guard import RemovalGuard
from streams.watcher.known import IndexedDocuments
from streams.watcher.metrics import WatcherMetrics
from streams.watcher.pacing import open_pacing
from streams.watcher.publisher import ChangePublisher
from streams.watcher.reading import BatchReader
from streams.watcher.status import TREE_NAME, ScanReport, StatusFile
from streams.watcher.sync import RootSync
from streams.watcher.tombstones import Tombstones
from streams.watcher.tree import TreeWatcher
from streams.watcher.waits import Waits
from streams.watcher.watch import RootWatcher

log = structlog.get_logger()

#: A root's loop that doesn't come round for so long is stuck: no file, no service and no timer explains it.
STUCK_SECONDS = 120.0
STOP_SECONDS = 10.0
OpenSync = Callable[[VaultRoot, Callable[[], object]], RootSync]
#: A command that a person waits for gives up after so many tries.
COMMAND_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherConfig:
    """What the process needs of the settings."""

    prefix: str
    roots: tuple[VaultRoot, ...]
    kafka: KafkaSettings
    kafka_servers: str
    opensearch: OpenSearchSettings
    opensearch_url: str
    indexing: IndexingSettings
    watcher: WatcherSettings
    status_folder: Path
    #: The memory tree; None: there is none.
    memories: Path | None = None
    tracing: TracingSettings = field(default_factory=TracingSettings)

    def __post_init__(self) -> None:
        require_distinct(self.roots)

    def chosen(self, name: str | None) -> tuple[VaultRoot, ...]:
        """All roots, or the one with this name."""
        return chosen_roots(self.roots, name)


async def run(config: WatcherConfig) -> None:
    """Watch every root until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await watch(config, stop=stop)
    except* ConfigurationError as group:
        # Told to the person who started us; task groups wrap it once per level.
        fault: BaseException = group
        while isinstance(fault, BaseExceptionGroup):
            fault = fault.exceptions[0]
        raise fault from None


async def watch(config: WatcherConfig, *, stop: asyncio.Event) -> None:
    """Watch every root until `stop` is set."""
    roots = config.roots if config.memories is not None else config.chosen(None)
    names = [root.name for root in roots] + ([] if config.memories is None else [TREE_NAME])
    metrics = WatcherMetrics(process_registry())
    lives = {name: Liveness(limit_seconds=STUCK_SECONDS) for name in names}
    for liveness in lives.values():
        liveness.waiting(1)  # its loop always has something to do: come round again
    ready = Readiness(names)
    waits = Waits(metrics, list(lives.values()), stop)
    settings = config.watcher
    async with (
        _opening(config, metrics, waits, stop, attempts=None) as open_sync,
        serve_health(
            settings.http_host,
            settings.http_port,
            metrics.registry,
            live=lambda: _all_live(lives),
            ready=ready.verdict,
        ) as port,
    ):
        log.info("watcher.started", roots=names, port=port)
        syncs = [open_sync(root, lives[root.name].moved) for root in roots]
        watchers: list[RootWatcher | TreeWatcher] = [
            RootWatcher(
                sync=sync,
                settings=settings,
                status=StatusFile(config.status_folder, sync.root.name),
                liveness=lives[sync.root.name],
                stop=stop,
                on_first_look=lambda name=sync.root.name: ready.met(name),  # type: ignore[misc]
            )
            for sync in syncs
        ]
        if config.memories is not None:
            watchers.append(
                TreeWatcher(
                    tree=VaultTree(config.roots, config.memories),
                    folder=config.memories,
                    open_sync=lambda root: open_sync(root, lives[TREE_NAME].moved),
                    settings=settings,
                    status_folder=config.status_folder,
                    liveness=lives[TREE_NAME],
                    stop=stop,
                    on_first_look=lambda: ready.met(TREE_NAME),
                )
            )
        await _until_stopped(watchers, stop)
    log.info("watcher.stopped")


async def _until_stopped(watchers: Sequence[RootWatcher | TreeWatcher], stop: asyncio.Event) -> None:
    """A watcher in the middle of something gets a while; what isn't sent is found by the next scan."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(watcher.run(), name=watcher.name) for watcher in watchers]
        stopping = group.create_task(stop.wait())
        await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        await asyncio.wait(tasks, timeout=STOP_SECONDS)
        for task in tasks:
            task.cancel()


async def rescan(
    config: WatcherConfig, *, root: str | None, confirm_removals: bool
) -> dict[str, ScanReport | HoplineError]:
    """Compare the roots with the index once, sending every file. A root that fails stops no other."""
    known = await asyncio.to_thread(lambda: VaultTree(config.roots, config.memories).all_roots)
    roots = chosen_roots(known, root)
    metrics = WatcherMetrics(CollectorRegistry())
    stop = asyncio.Event()
    waits = Waits(metrics, [], stop)
    results: dict[str, ScanReport | HoplineError] = {}
    async with _opening(config, metrics, waits, stop, attempts=COMMAND_TRIES) as open_sync:
        for one in roots:
            sync = open_sync(one, bool)
            try:
                results[sync.root.name] = await sync.scan(everything=True, confirmed=confirm_removals)
                if confirm_removals:
                    StatusFile(config.status_folder, sync.root.name).note_confirmation()
            except HoplineError as exc:
                results[sync.root.name] = exc
    return results


@asynccontextmanager
async def _opening(
    config: WatcherConfig,
    metrics: WatcherMetrics,
    waits: Waits,
    stop: asyncio.Event,
    *,
    attempts: int | None,
) -> AsyncIterator[OpenSync]:
    """Opens the sync of a root; all are on one producer, one gate, one clock and one pace."""
    topics = Topics(config.prefix)
    kafka, store = waits.policy("kafka", attempts=attempts), waits.policy("opensearch", attempts=attempts)
    gate = gate_at(
        config.opensearch_url,
        config.opensearch,
        prefix=config.prefix,
        retry=store,
        observe=metrics.store.observe,
    )
    tracing = open_tracing(config.tracing, service="hopline-watcher")
    producer = EventProducer(config.kafka, config.kafka_servers, tracing=tracing)
    publisher = ChangePublisher(producer=producer, topic=topics.file_changes, retry=kafka, tracing=tracing)
    clock, tombstones = VersionClock(), Tombstones(gate=gate)
    known = IndexedDocuments(gate)
    pacing = open_pacing(
        config.watcher, config.kafka, config.kafka_servers, topics, metrics=metrics, stop=stop
    )

    def open_sync(root: VaultRoot, on_batch: Callable[[], object]) -> RootSync:
        files = LocalVaultFiles(root.path)
        settings = config.watcher
        return RootSync(
            root=root,
            files=files,
            known=known,
            publisher=publisher,
            clock=clock,
            guard=RemovalGuard(ratio=settings.removal_guard_ratio, minimum=settings.removal_guard_minimum),
            reader=BatchReader(files=files, clock=clock, inline_max_bytes=config.indexing.inline_max_bytes),
            metrics=metrics,
            tombstones=tombstones,
            on_batch=on_batch,
            pacing=pacing,
        )

    try:
        await kafka.call(lambda: ensure_topics(config.kafka, config.kafka_servers, topics))
        yield open_sync
    finally:
        await gate.close()
        if pacing is not None:
            await pacing.reader.close()
        try:
            await producer.stop()
        except Transient as exc:
            log.warning("producer.not_closed", reason=str(exc))
        tracing.close()


def _all_live(lives: dict[str, Liveness]) -> Verdict:
    verdicts = {name: liveness.verdict() for name, liveness in lives.items()}
    stuck = [f"{name}: {verdict.reason}" for name, verdict in verdicts.items() if not verdict.ok]
    return Verdict(
        ok=not stuck,
        reason="; ".join(stuck) or "every root's loop comes round",
        details={name: verdict.details for name, verdict in verdicts.items()},
    )
