"""Worker processes that run `tests/contract/workers/echo.py`, and topics of one test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streams.admin import delete_topics, ensure_topics
from streams.lag import PartitionLag, lag
from streams.producer import EventProducer, OutgoingRecord
from streams.settings import KafkaSettings
from streams.topics import Topics

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPT = REPOSITORY / "tests/contract/workers/echo.py"


@dataclass(kw_only=True)
class EchoTopics:
    """The topics of one test. Keys of numbers spread over the partitions; `p=` pins one by its key."""

    servers: str
    topics: Topics
    settings: KafkaSettings

    async def create(self) -> None:
        await ensure_topics(self.settings, self.servers, self.topics)

    async def delete(self) -> None:
        await delete_topics(self.settings, self.servers, list(self.topics.retention_ms))

    async def send(self, values: Sequence[bytes | None], *, topic: str | None = None) -> None:
        """All of one key, so all in one partition, in this order."""
        await self.send_keyed([(b"one", value) for value in values], topic=topic)

    async def send_keyed(
        self, records: Sequence[tuple[bytes, bytes | None]], *, topic: str | None = None
    ) -> None:
        name = topic or self.topics.file_changes
        async with EventProducer(self.settings, self.servers) as producer:
            await producer.send_all([OutgoingRecord(topic=name, key=k, value=v) for k, v in records])

    async def lag(self) -> list[PartitionLag]:
        return await lag(self.settings, self.servers, self.topics.group("ingest"), self.topics.inputs)

    async def committed(self) -> int:
        return sum(part.committed or 0 for part in await self.lag())

    async def waiting(self) -> int:
        return sum(part.lag for part in await self.lag())


@dataclass(kw_only=True)
class EchoWorker:
    """One process. `steps` is its log file as far as it is written; workers of a test share the file."""

    topics: EchoTopics
    folder: Path
    behaviour: dict[str, Any] = field(default_factory=dict)
    agent: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    _errors: Path = field(init=False)

    def __post_init__(self) -> None:
        self._errors = self.folder / f"worker-{time.monotonic_ns()}.log"

    @property
    def log(self) -> Path:
        return self.folder / "echo.log"

    def start(self) -> EchoWorker:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HOPLINE_")}
        environment |= {
            "PYTHONPATH": str(REPOSITORY),
            "ECHO_PREFIX": self.topics.topics.prefix,
            "ECHO_SERVERS": self.topics.servers,
            "ECHO_LOG": str(self.log),
            "ECHO_BEHAVIOUR": json.dumps(self.behaviour),
            "ECHO_AGENT": json.dumps({"batch_records": 10, "retry_max_seconds": 0.5, **self.agent}),
            "ECHO_KAFKA": self.topics.settings.model_dump_json(),
        }
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen([sys.executable, str(SCRIPT)], env=environment, stderr=errors)
        return self

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def terminate(self, seconds: float = 20) -> int:
        return self.end(signal.SIGTERM, seconds)

    def end(self, how: signal.Signals, seconds: float = 20) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.exit_code(seconds)

    def exit_code(self, seconds: float = 20) -> int:
        assert self.process is not None
        return self.process.wait(seconds)

    def events(self) -> list[dict[str, Any]]:
        """What the worker logged on stderr."""
        if not self._errors.exists():
            return []
        lines = self._errors.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.events() if line["event"] == event]

    def raw_log(self) -> str:
        return self._errors.read_text() if self._errors.exists() else ""

    def steps(self, step: str | None = None) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if step is None or line["step"] == step]

    def done(self) -> Counter[str]:
        """How often each value was committed to the 'store'."""
        return Counter(value for line in self.steps("committed") for value in line["values"])

    def get(self, path: str) -> tuple[int, str]:
        port = self.logged("worker.started")[0]["http_port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()

    def is_ready(self) -> bool:
        return bool(self.logged("worker.started")) and self.get("/readyz")[0] == 200

    def metric(self, name: str) -> float:
        """A sample without labels."""
        [line] = [line for line in self.get("/metrics")[1].splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])


async def until(look: Callable[[], Awaitable[bool]], *, seconds: float = 30, what: str = "it") -> None:
    """Wait until `look` says yes; fail with `what`."""
    deadline = time.monotonic() + seconds
    while not await look():
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds} s"
        await asyncio.sleep(0.1)


async def until_seen(look: Callable[[], object], *, seconds: float = 30, what: str = "it") -> None:
    async def seen() -> bool:
        return bool(look())

    await until(seen, seconds=seconds, what=what)


@contextmanager
def stopped_after(*workers: EchoWorker) -> Iterator[None]:
    """Whatever the test does, no process stays."""
    try:
        yield
    finally:
        for worker in workers:
            if worker.process is not None and worker.process.poll() is None:
                worker.kill()


async def all_done(topics: EchoTopics, seconds: float = 60) -> None:
    async def reached() -> bool:
        return await topics.waiting() == 0

    await until(reached, seconds=seconds, what="an empty backlog")


def assignment(worker: EchoWorker) -> set[str]:
    """topic:partition of the latest assignment, without the prefix."""
    lines = worker.logged("worker.assigned")
    return {place.rpartition(".")[2] for place in lines[-1]["partitions"]} if lines else set()


def split_evenly(workers: Sequence[EchoWorker]) -> bool:
    held = [assignment(worker) for worker in workers]
    return all(held) and sum(len(part) for part in held) == 8 == len(set().union(*held))
