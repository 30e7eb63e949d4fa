"""The whole pipeline as its users run it: one process per agent, started by the product's own commands."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopline.local.ports import free_ports
from streams.lag import LagReader, PartitionLag
from streams.rebuild import AGENTS
from streams.settings import KafkaSettings
from streams.topics import Topics

REPOSITORY = Path(__file__).resolve().parent.parent
#: Agent, topic, partition.
Place = tuple[str, str, int]
KEY = "test-key-0123456789abcdef0123456789abcdef"


@dataclass(kw_only=True)
class Pipeline:
    """Agents, watcher and query service over running engines, with a prefix and a data folder of their own."""

    prefix: str
    kafka_servers: str
    opensearch_url: str
    data_dir: Path
    vaults: list[dict[str, Any]]
    settings: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith("HOPLINE_")}
        return own | {
            "HOPLINE_PREFIX": self.prefix,
            "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": self.kafka_servers,
            "HOPLINE_OPENSEARCH__URL": self.opensearch_url,
            "HOPLINE_LOCAL__DATA_DIR": str(self.data_dir),
            "HOPLINE_VAULTS": json.dumps(self.vaults),
            "PYTHONPATH": str(REPOSITORY),
            **self.settings,
        }

    def start(self, *names: str, seconds: float = 90) -> None:
        """An agent, `watch` or `api`; returns when each says that it is ready.

        `ingest.1`, `ingest.2`: workers of one agent side by side, whose names are their instance ids too.
        """
        for name in names:
            self._spawn(name)
        for name in names:
            self.wait_ready(name, seconds)

    def _spawn(self, name: str) -> None:
        port = self.ports.setdefault(name, free_ports())
        what, numbered, _ = name.partition(".")
        setting = {"watch": "WATCHER__HTTP_PORT", "api": "API__PORT"}.get(what, f"{what.upper()}__HTTP_PORT")
        own = {f"HOPLINE_{setting}": str(port)}
        if numbered:
            own[f"HOPLINE_{what.upper()}__INSTANCE_ID"] = name
        command = ["agent", what] if what in AGENTS else [what]
        log = (self.data_dir / f"{name}.log").open("ab")
        with log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "hopline", *command],
                env=self.environment | own,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_ready(self, name: str, seconds: float = 90) -> None:
        def ready() -> bool:
            process = self.processes[name]
            assert process.poll() is None, f"{name} ended with {process.returncode}:\n{self.log_tail(name)}"
            return self.http_status(name, "/readyz") == 200

        wait_for(ready, seconds, f"{name} ready")

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def stop(self, *names: str, seconds: float = 40) -> None:
        for name in names or tuple(self.processes):
            process = self.processes.pop(name)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
                raise

    def log_tail(self, name: str) -> str:
        return (self.data_dir / f"{name}.log").read_text(errors="replace")[-4_000:]

    def http_status(self, name: str, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}{path}", timeout=5) as response:
                status: int = response.status
                return status
        except urllib.error.HTTPError as exc:
            return exc.code
        except OSError:
            return 0

    def metric(self, name: str, sample: str) -> float:
        """Sum of the samples whose line begins with `sample` (name, and labels if wanted)."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        found = [line for line in lines if line.startswith(sample) and line[len(sample)] in " {"]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def cli(
        self, *arguments: str, stdin: str | None = None, seconds: float = 120, key: str = KEY
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hopline", *arguments],
            env=self.environment | {"HOPLINE_API_KEY": key, "HOPLINE_API_URL": self.api_url},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.get('api', 1)}"

    def request(self, path: str, body: dict[str, Any] | None = None, key: str = KEY) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - loopback, own service
            self.api_url + path, data, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=15) as response:  # noqa: S310 - see above
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, json.loads(exc.read())

    def paths_for(self, query: str, key: str = KEY, **more: Any) -> list[str]:
        status, answer = self.request("/v1/search", {"query": query, "page_size": 50, **more}, key)
        assert status == 200, answer
        return [hit["path"] for hit in answer["hits"]]

    def finds(self, query: str, paths: list[str]) -> Callable[[], bool]:
        """A condition: the words of the query are in exactly these documents."""
        return lambda: self.paths_for(query, parts=["keyword"]) == paths

    def backlog(self) -> int:
        """Records that the agents started here, those that are down just now too, have not committed yet."""
        return sum(part.lag for part in self.waiting().values())

    def waiting(self) -> dict[Place, PartitionLag]:
        """The same by agent, topic and partition."""

        async def look() -> dict[Place, PartitionLag]:
            async with self._looks() as waiting:
                return await waiting()

        return asyncio.run(look())

    def wait_idle(self, seconds: float = 120) -> None:
        """Nothing waits in the topics, seen three times in a row (a batch may still be between the two)."""
        asyncio.run(self._wait_idle(seconds))

    async def _wait_idle(self, seconds: float) -> None:
        quiet, end = 0, time.monotonic() + seconds
        async with self._looks() as waiting:
            while quiet < 3:
                behind = sum(part.lag for part in (await waiting()).values())
                quiet = quiet + 1 if behind == 0 else 0
                assert time.monotonic() < end, f"still {behind} records behind after {seconds} s"
                await asyncio.sleep(0.3)

    @contextlib.asynccontextmanager
    async def _looks(self) -> AsyncIterator[Callable[[], Awaitable[dict[Place, PartitionLag]]]]:
        """Over connections that stay open: to open them takes much longer than to look."""
        topics, settings = Topics(self.prefix), KafkaSettings(bootstrap_servers=self.kafka_servers)
        started = {name.partition(".")[0] for name in self.ports}
        async with contextlib.AsyncExitStack() as stack:
            readers = {
                agent: await stack.enter_async_context(
                    LagReader(settings, self.kafka_servers, topics.group(agent))
                )
                for agent in AGENTS
                if agent in started
            }

            async def waiting() -> dict[Place, PartitionLag]:
                return {
                    (agent, part.topic, part.partition): part
                    for agent, reader in readers.items()
                    for part in await reader.read(topics.read_by(agent))
                }

            yield waiting


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Seconds until the condition held; fails with `what` when it never does."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - start


@contextlib.contextmanager
def running(pipeline: Pipeline, *names: str) -> Iterator[Pipeline]:
    try:
        pipeline.start(*names)
        yield pipeline
    finally:
        for process in pipeline.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait(10)


def write_keys(folder: Path, **tenants: str) -> None:
    """keys.json of the query service: `KEY` for tenant local, more as key=tenant."""
    keys = {KEY: "local"} | {key: tenant for tenant, key in tenants.items()}
    entries = [
        {
            "sha256": hashlib.sha256(key.encode()).hexdigest(),
            "tenant": tenant,
            "agent": "me",
            "teams": [],
            "roles": ["agent"],
        }
        for key, tenant in keys.items()
    ]
    (folder / "keys.json").write_text(json.dumps({"keys": entries}))
