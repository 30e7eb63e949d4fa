"""The product's own processes, on a prefix and a folder of the evaluation. Nothing outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Self

from hopline.evaluation.homes import EvalHome, Manifest, homes_folder, root_of
from hopline.local.down import stop_leftovers
from hopline.local.folders import StackFolders
from hopline.local.maven import Say
from hopline.local.ports import LOOPBACK, free_ports
from hopline.local.preflight import available_mb, needed_mb, own_engines, require_folders, require_memory
from hopline.local.processes import ProcessMark, tail
from hopline.local.services import engine_specs, service_specs
from hopline.local.state import StackPhase, StackPlan, StackState, read_state, write_whole
from hopline.local.supervised import ProcessSpec, Supervised
from hopline.local.up import plan_engines
from hopline.settings import Settings
from indexers.errors import HoplineError, WrongUsage
from streams.rebuild import AGENTS

WATCHER = "watch"
QUERY_SERVICE = "api"
ALL_SERVICES = (*AGENTS, WATCHER, QUERY_SERVICE)
_ENGINES = ("kafka", "opensearch")
_POLL_SECONDS = 0.2


def known_engines(settings: Settings) -> tuple[str, str]:
    """Kafka and OpenSearch of the settings or of a running `hopline up`; empty: one must be started for us."""
    state = read_state(StackFolders(settings.local.data_dir).state)
    running = state is not None and state.supervised and state.phase == "running"
    own = own_engines(settings)
    kafka = "" if own.kafka and not running else settings.kafka_servers
    return kafka, "" if own.opensearch and not running else settings.opensearch_url


def settings_of(settings: Settings, home: EvalHome, manifest: Manifest) -> Settings:
    """The caller's, search and models and all, but with prefix, vault, keys, ports and folder of the evaluation."""
    kafka_port = free_ports(2)
    node_port = free_ports(2, without=range(kafka_port - 1, kafka_port + 2))
    local = settings.local.model_copy(
        update={"data_dir": home.folder, "kafka_port": kafka_port, "opensearch_port": node_port}
    )
    api = settings.api.model_copy(
        update={"host": LOOPBACK, "port": free_ports(), "keys_file": home.keys_file}
    )
    # A question is asked once a configuration: what the first has embedded must not help the others.
    search = settings.search.model_copy(update={"query_cache_entries": 0})
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": manifest.kafka_servers or None})
    opensearch = settings.opensearch.model_copy(update={"url": manifest.opensearch_url or None})
    agents = {name: getattr(settings, name).model_copy(update={"http_port": 0}) for name in AGENTS}
    watcher = settings.watcher.model_copy(update={"http_port": 0})
    return settings.model_copy(
        update={
            "prefix": manifest.prefix,
            "vaults": (root_of(manifest),),
            "local": local,
            "api": api,
            "search": search,
            "kafka": kafka,
            "opensearch": opensearch,
            "watcher": watcher,
            **agents,
        }
    )


class EvalProcesses:
    """Use as a context manager: at its end everything is stopped, the last started first, also after Ctrl-C."""

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._folders = StackFolders(settings.local.data_dir)
        self._children: list[Supervised] = []
        vaults = [root.model_dump(mode="json") for root in settings.vaults]
        self._plan = StackPlan(vaults_json=json.dumps(vaults))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with uninterrupted():
            self._stop(self._children)
            self._write("stopped")

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self._settings.api.port}"

    def start_engines(self) -> None:
        """Those that neither the settings nor a running stack have. Downloads them where they lack."""
        own = own_engines(self._settings)
        if not own.any:
            return
        require_folders(self._settings, own)
        require_memory(available_mb(), needed_mb(self._settings, own, engines_only=False))
        plan = plan_engines(self._plan, self._settings, self._say)
        self._start(engine_specs(self._settings, plan))

    def start(self, names: Collection[str]) -> None:
        """Returns when each is ready. Raises HoplineError with the end of its log where one isn't."""
        self._start([spec for spec in service_specs(self._settings, self._plan) if spec.name in names])

    def stop(self, names: Collection[str]) -> None:
        with uninterrupted():
            self._stop([child for child in self._children if child.spec.name in names])

    def require_running(self) -> None:
        """Raises HoplineError for a process that has ended by itself."""
        for child in self._children:
            status = child.ended()
            if status is not None:
                log = child.spec.launch.log
                raise HoplineError(f"{child.spec.name} ended (exit {status}); {log} ends with:\n{tail(log)}")

    def _start(self, specs: Sequence[ProcessSpec]) -> None:
        group = [Supervised(spec=self._own(spec)) for spec in specs]
        for child in group:
            self._children.append(child)
            child.start()
            self._write("starting")
        deadline = time.monotonic() + self._settings.local.start_timeout_seconds
        for child in group:
            self._await_ready(child, deadline)
        self._write("running")

    def _await_ready(self, child: Supervised, deadline: float) -> None:
        while not asyncio.run(_ready(child.spec)):
            self.require_running()
            if time.monotonic() > deadline:
                log = child.spec.launch.log
                raise HoplineError(f"{child.spec.name} isn't ready in time; {log} ends with:\n{tail(log)}")
            time.sleep(_POLL_SECONDS)

    def _own(self, spec: ProcessSpec) -> ProcessSpec:
        """Services read our settings where they differ from the caller's environment and file."""
        if spec.name in _ENGINES:
            return spec
        settings = self._settings
        own = {
            "HOPLINE_PREFIX": settings.prefix,
            "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": settings.kafka_servers,
            "HOPLINE_OPENSEARCH__URL": settings.opensearch_url,
            "HOPLINE_LOCAL__DATA_DIR": str(settings.local.data_dir),
            "HOPLINE_API__HOST": settings.api.host,
            "HOPLINE_API__KEYS_FILE": str(settings.keys_file),
            "HOPLINE_SEARCH__QUERY_CACHE_ENTRIES": str(settings.search.query_cache_entries),
        }
        launch = dataclasses.replace(spec.launch, env=dict(spec.launch.env) | own)
        return dataclasses.replace(spec, launch=launch)

    def _stop(self, children: Sequence[Supervised]) -> None:
        """The watcher and the others before the engines; those of one group drain side by side."""
        engines = [child for child in children if child.spec.name in _ENGINES]
        services = [child for child in reversed(children) if child not in engines]
        for group in (services, engines):
            for child in group:
                child.ask_to_stop()
            deadline = time.monotonic() + max((child.spec.grace_seconds for child in group), default=0.0)
            for child in group:
                child.end(deadline)
        self._children = [child for child in self._children if child not in children]

    def _write(self, phase: StackPhase) -> None:
        """For `stop_abandoned`, should this process be killed."""
        mark = ProcessMark.of(os.getpid())
        state = StackState(
            phase=phase,
            supervisor_pid=mark.pid,
            supervisor_started=mark.started,
            processes=[child.state for child in self._children],
        )
        write_whole(self._folders.state, state)


def require_idle(home: EvalHome) -> None:
    """Raises WrongUsage where another command works in this folder."""
    state = read_state(StackFolders(home.folder).state)
    if state is not None and state.supervised:
        raise WrongUsage(f"{home.folder.name} is being evaluated just now: wait for that or stop it")


def stop_abandoned(settings: Settings, say: Say) -> None:
    """Processes of an evaluation that was killed."""
    for folder in homes_folder(settings).glob("*/"):
        stop_leftovers(StackFolders(folder), say)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal end it as Ctrl-C does: by an exception, which stops what was started."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with _handling((signal.SIGTERM, signal.SIGHUP), interrupt):
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not leave half of the processes running."""
    with _handling((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handling(numbers: Sequence[signal.Signals], handler: object) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


async def _ready(spec: ProcessSpec) -> bool:
    return await spec.ready()
