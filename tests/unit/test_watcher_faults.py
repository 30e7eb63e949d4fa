"""What one root's watcher lives through, and what it must not swallow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from watchfiles import Change
from watchfiles._rust_notify import WatchfilesRustInternalError

from indexers.domain.identity import Namespace
from indexers.errors import HoplineError
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import VaultRoot
from indexers.vault.local import LocalVaultFiles
from streams.health import Liveness
from streams.producer import EventProducer
from streams.settings import KafkaSettings, WatcherSettings
from streams.versions import VersionClock
from streams.watcher import watch
from streams.watcher.awaited import UndecodableName, next_of
from streams.watcher.guard import RemovalGuard
from streams.watcher.known import KnownDocument
from streams.watcher.metrics import WatcherMetrics
from streams.watcher.publisher import ChangePublisher
from streams.watcher.reading import BatchReader
from streams.watcher.status import StatusFile
from streams.watcher.sync import RootSync


class NothingKnown:
    async def of(self, _namespace: Namespace) -> dict[str, KnownDocument]:
        return {}


class Buggy:
    """A bug, however its type is related to what libraries raise."""

    async def of(self, _namespace: Namespace) -> dict[str, KnownDocument]:
        raise RecursionError


def watcher(folder: Path, known: Any, stop: asyncio.Event) -> watch.RootWatcher:
    """Of an empty vault: nothing is ever sent."""
    vault = folder / "vault"
    vault.mkdir()
    files, clock = LocalVaultFiles(vault), VersionClock()
    producer = EventProducer(KafkaSettings(), "127.0.0.1:9")
    sync = RootSync(
        root=VaultRoot(name="main", path=vault),
        files=files,
        known=known,
        publisher=ChangePublisher(producer=producer, topic="t", retry=RetryPolicy.once()),
        clock=clock,
        guard=RemovalGuard(ratio=0.3, minimum=20),
        reader=BatchReader(files=files, clock=clock, inline_max_bytes=1_000),
        metrics=WatcherMetrics(CollectorRegistry()),
    )
    return watch.RootWatcher(
        sync=sync,
        settings=WatcherSettings(),
        status=StatusFile(folder / "status", "main"),
        liveness=Liveness(limit_seconds=60),
        stop=stop,
        on_first_look=lambda: None,
    )


async def test_a_bug_is_no_weather(tmp_path: Path) -> None:
    root = watcher(tmp_path, Buggy(), asyncio.Event())
    with pytest.raises(RecursionError):
        await asyncio.wait_for(root.run(), 10)


async def test_a_bug_names_the_vault_that_it_befell(tmp_path: Path) -> None:
    root = watcher(tmp_path, Buggy(), asyncio.Event())
    with pytest.raises(RecursionError) as raised:
        await asyncio.wait_for(root.run(), 10)
    assert raised.value.__notes__ == ["while watching the vault main"]


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        (WatchfilesRustInternalError('Unable to decode path "x" to string'), UndecodableName),
        (WatchfilesRustInternalError("error in underlying watcher"), HoplineError),
        (ZeroDivisionError(), ExceptionGroup),
    ],
)
async def test_what_ends_a_watch(fault: Exception, ends: type[Exception]) -> None:
    async def ending() -> AsyncGenerator[set[tuple[Change, str]], None]:
        yield set()
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [fault])])

    changes = ending()
    assert await next_of(changes) == set()
    with pytest.raises(ends) as raised:
        await next_of(changes)
    assert type(raised.value) is ends


async def test_watches_that_the_kernel_refuses_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = asyncio.Event()
    tries: list[Path] = []

    async def refusing(root: Path, **_options: Any) -> AsyncGenerator[set[tuple[Change, str]], None]:
        tries.append(root)
        if len(tries) < 2:
            msg = "OS file watch limit reached"
            raise RuntimeError(msg)
        yield set()
        stop.set()

    monkeypatch.setattr(watch, "awatch", refusing)
    root = watcher(tmp_path, NothingKnown(), stop)
    await asyncio.wait_for(root.run(), 10)
    failures = root.sync.metrics.registry.get_sample_value("hopline_watcher_failures_total", {"root": "main"})
    assert (len(tries), failures) == (2, 1.0)
