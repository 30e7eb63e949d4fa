"""Everything that can be refused before anything is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from hopline.local.engine_homes import EngineHome, ensure_home
from hopline.local.folders import StackFolders, barrier, require_entry, require_writable
from hopline.local.java import Java, find_java
from hopline.local.maven import Say
from hopline.local.ports import require_free
from hopline.local.processes import OsUser, engine_user
from hopline.local.state import StackState, read_state
from hopline.settings import Settings, default_data_dir
from indexers.errors import ConfigurationError
from indexers.settings import EmbedderSettings, ExtractorSettings

#: Beside the heap: code, threads, buffers (measured: 360 and 395 MB in all with heaps of 512 MB half used).
_ENGINE_OVERHEAD_MB = 250
#: Agents, watcher and query service; two of them hold the embedder, one the extractor.
_SERVICES_MB = 1_300
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_CGROUP_USED = (Path("/sys/fs/cgroup/memory.current"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEngines:
    """Which engines are ours to start: those that no setting names."""

    kafka: bool
    opensearch: bool

    @property
    def any(self) -> bool:
        return self.kafka or self.opensearch


def own_engines(settings: Settings) -> OwnEngines:
    return OwnEngines(kafka=not settings.kafka.bootstrap_servers, opensearch=not settings.opensearch.url)


def needed_mb(settings: Settings, own: OwnEngines, *, engines_only: bool) -> int:
    kafka = settings.local.kafka_heap_mb + _ENGINE_OVERHEAD_MB if own.kafka else 0
    opensearch = settings.local.opensearch_heap_mb + _ENGINE_OVERHEAD_MB if own.opensearch else 0
    return kafka + opensearch + (0 if engines_only else _SERVICES_MB)


def available_mb() -> int:
    """What the machine or the container has left, whichever is less."""
    left = psutil.virtual_memory().available
    for limit_file, used_file in zip(_CGROUP_LIMITS, _CGROUP_USED, strict=True):
        try:
            limit, used = limit_file.read_text().strip(), int(used_file.read_text())
        except (OSError, ValueError):
            continue
        if limit.isdecimal():
            left = min(left, max(0, int(limit) - used))
    return left // 1_048_576


def require_embedder(settings: EmbedderSettings) -> None:
    """What can be told without loading a model, so that no engine is started for nothing."""
    if settings.backend == "torch" and not all(map(find_spec, ("torch", "sentence_transformers"))):
        raise ConfigurationError(
            "HOPLINE_EMBEDDER__BACKEND=torch needs the extra `gpu` (5 GB): in a checkout "
            "`pip install -e '.[gpu]'`, else `pip install 'hopline[gpu]'`; or set it to onnx"
        )
    if settings.backend == "onnx" and settings.device == "cuda":
        raise ConfigurationError(
            "HOPLINE_EMBEDDER__DEVICE=cuda needs HOPLINE_EMBEDDER__BACKEND=torch (extra `gpu`)"
        )


def require_extractor(settings: ExtractorSettings) -> None:
    """As `require_embedder`."""
    if settings.backend == "torch" and not all(map(find_spec, ("torch", "gliner"))):
        raise ConfigurationError(
            "HOPLINE_EXTRACTOR__BACKEND=torch needs the extra `gpu` (5 GB): in a checkout "
            "`pip install -e '.[gpu]'`, else `pip install 'hopline[gpu]'`; or set it to onnx"
        )
    if settings.backend == "onnx" and settings.device == "cuda":
        raise ConfigurationError(
            "HOPLINE_EXTRACTOR__DEVICE=cuda needs HOPLINE_EXTRACTOR__BACKEND=torch (extra `gpu`)"
        )


def require_memory(available: int, needed: int) -> None:
    if available < needed:
        msg = (
            f"too little memory: {available} MiB are free and the stack needs about {needed} MiB; "
            "close something, or lower HOPLINE_LOCAL__OPENSEARCH_HEAP_MB and HOPLINE_LOCAL__KAFKA_HEAP_MB"
        )
        raise ConfigurationError(msg)


def require_folders(settings: Settings, own: OwnEngines) -> None:
    folders = StackFolders(settings.local.data_dir)
    require_writable(folders.data_dir, setting="HOPLINE_LOCAL__DATA_DIR")
    if not own.any:
        return
    require_writable(settings.local.cache_dir, setting="HOPLINE_LOCAL__CACHE_DIR")
    user = node_user(settings) if own.opensearch else None
    require_entry(folders.data_dir, user, setting="HOPLINE_LOCAL__DATA_DIR")
    require_entry(settings.local.cache_dir, user, setting="HOPLINE_LOCAL__CACHE_DIR")


def require_ports(settings: Settings, own: OwnEngines, *, engines_only: bool) -> None:
    local, api = settings.local, settings.api
    if own.kafka:
        for port, use in ((local.kafka_port, "Kafka"), (local.kafka_port + 1, "Kafka's controller")):
            require_free(port, use=use, setting="HOPLINE_LOCAL__KAFKA_PORT", stop_with=_stop_with)
    if own.opensearch:
        node = local.opensearch_port
        for port, use in ((node, "OpenSearch"), (node + 1, "OpenSearch's transport")):
            require_free(port, use=use, setting="HOPLINE_LOCAL__OPENSEARCH_PORT", stop_with=_stop_with)
    if not engines_only:
        require_free(
            api.port,
            use="the query service",
            setting="HOPLINE_API__PORT",
            host=api.host,
            stop_with=_stop_with,
        )


def _stop_with(port: int) -> str | None:
    """How to stop another stack of Hopline that holds the port: the demo, or that of the usual data folder."""
    stacks = {
        default_data_dir().with_name("hopline-demo"): "that is Hopline's demo: `make demo-down` stops it",
        default_data_dir(): "that is another Hopline: `hopline down` without these settings stops it",
    }
    for folder, said in stacks.items():
        state = read_state(StackFolders(folder).state)
        if state is not None and state.supervised and port in _ports(state):
            return said
    return None


def _ports(state: StackState) -> set[int]:
    """An engine's second port is the next one."""
    first = {p.name: int(p.url.rpartition(":")[2] or 0) for p in state.processes}
    return {*first.values(), *(port + 1 for name, port in first.items() if name in {"kafka", "opensearch"})}


def node_user(settings: Settings) -> OsUser | None:
    name = settings.local.opensearch_user
    try:
        return engine_user(name)
    except KeyError as exc:
        msg = f"there is no user {name!r} to run OpenSearch; name one with HOPLINE_LOCAL__OPENSEARCH_USER"
        raise ConfigurationError(msg) from exc


def choose_java(settings: Settings, own: OwnEngines, env: Mapping[str, str]) -> Java:
    user = node_user(settings) if own.opensearch else None
    return find_java(env, may_run=lambda home: barrier(home / "bin", user) is None)


def fetch_homes(settings: Settings, own: OwnEngines, java: Java, say: Say) -> dict[str, EngineHome]:
    names = [name for name, ours in (("kafka", own.kafka), ("opensearch", own.opensearch)) if ours]
    cache = settings.local.cache_dir
    try:
        return {name: ensure_home(name, cache_dir=cache, java=java, say=say) for name in names}
    except OSError as exc:
        where = exc.filename or cache
        msg = f"the engines can't be kept in {cache}: {where}: {exc.strerror or os.strerror(exc.errno or 0)}"
        raise ConfigurationError(f"{msg}; make room or set HOPLINE_LOCAL__CACHE_DIR") from exc
