"""Engines for tests: a broker and a node, each stopped, killed and restarted on the same ports and data."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hopline.local.engine_homes import ensure_home
from hopline.local.engines import KafkaBroker, OpenSearchNode
from hopline.local.java import find_java
from hopline.local.ports import free_ports
from hopline.local.processes import engine_user, spawn, tail
from hopline.local.readiness import kafka_answers, opensearch_answers
from hopline.settings import LocalSettings
from streams.settings import KafkaSettings

START_SECONDS = 120.0
STOP_SECONDS = 30.0
#: Each test makes and drops its indices, and the node waits for the disk several times over each of them.
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - a folder of the run's own is made in it
MEMORY_FREE_BYTES = 2 * 1024**3


@dataclass(kw_only=True)
class RunningEngine:
    """One engine process. All methods block until it is done."""

    engine: KafkaBroker | OpenSearchNode
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def address(self) -> str:
        """host:port of the broker, URL of the node."""
        return self.engine.servers if isinstance(self.engine, KafkaBroker) else self.engine.url

    def spawn(self) -> None:
        self.engine.prepare()
        self.process = spawn(self.engine.launch())

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        answers = kafka_answers if isinstance(self.engine, KafkaBroker) else opensearch_answers
        while not run_aside(lambda: answers(self.address)):
            assert self.process is not None
            assert self.process.poll() is None, f"died at start:\n{tail(self.engine.log)}"
            assert time.monotonic() < deadline, f"not ready:\n{tail(self.engine.log)}"
            time.sleep(0.1)

    def start(self) -> None:
        self.spawn()
        self.wait_ready()

    def stop(self) -> None:
        """SIGTERM, as an administrator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, as the kernel does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
        self.process = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePair:
    """A broker and a node that belong to one test and may be stopped."""

    kafka: RunningEngine
    opensearch: RunningEngine

    @property
    def kafka_servers(self) -> str:
        return self.kafka.address

    @property
    def opensearch_url(self) -> str:
        return self.opensearch.address


def engine_pair(folder: Path) -> EnginePair:
    """Not started; free ports, data and logs below `folder`. Downloads the engines where they lack."""
    user = engine_user(LocalSettings().opensearch_user)
    java = find_java(os.environ)
    cache = LocalSettings().cache_dir
    homes = {
        name: ensure_home(name, cache_dir=cache, java=java, say=print) for name in ("kafka", "opensearch")
    }
    first = free_ports(2)
    broker = KafkaBroker(
        home=homes["kafka"],
        java=java,
        data_dir=folder / "kafka",
        log=folder / "kafka.log",
        port=first,
        heap_mb=384,
        max_message_bytes=KafkaSettings().max_message_bytes,
        short_lived=True,
    )
    node = OpenSearchNode(
        home=homes["opensearch"],
        java=java,
        data_dir=folder / "opensearch",
        log=folder / "opensearch.log",
        port=free_ports(2, without=(first, first + 1)),
        heap_mb=512,
        user=user,
        short_lived=True,
    )
    return EnginePair(kafka=RunningEngine(engine=broker), opensearch=RunningEngine(engine=node))


@contextlib.contextmanager
def running_engines() -> Iterator[EnginePair]:
    """Both started side by side in a folder that any user can enter; stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="hopline-test-", dir=memory_folder()))
    folder.chmod(0o755)
    pair = engine_pair(folder)
    try:
        pair.opensearch.spawn()
        pair.kafka.spawn()
        pair.kafka.wait_ready()
        pair.opensearch.wait_ready()
        yield pair
    finally:
        pair.kafka.stop()
        pair.opensearch.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_broker() -> Iterator[RunningEngine]:
    """A broker alone, for tests that stop it and nothing else."""
    folder = Path(tempfile.mkdtemp(prefix="hopline-test-", dir=memory_folder()))
    broker = engine_pair(folder).kafka
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def memory_folder() -> Path | None:
    """Where files lie in memory, with room for a run's data; None: the default folder is as good as any."""
    try:
        found = os.statvfs(MEMORY_FOLDER)
    except OSError:
        return None
    roomy = found.f_bavail * found.f_frsize >= MEMORY_FREE_BYTES
    # Engines load native libraries out of their data folder.
    return MEMORY_FOLDER if roomy and not found.f_flag & os.ST_NOEXEC else None


def run_aside(make: Callable[[], Coroutine[object, object, bool]]) -> bool:
    """Fixtures run inside and outside of an event loop: this has a loop of its own, in a thread."""
    answer: list[bool] = []
    thread = threading.Thread(target=lambda: answer.append(asyncio.run(make())))
    thread.start()
    thread.join()
    return bool(answer and answer[0])
