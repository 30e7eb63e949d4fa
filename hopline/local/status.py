"""`hopline status`: each process as it is now, how far the groups are behind, what the watcher says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hopline.local.folders import StackFolders
from hopline.local.preflight import own_engines
from hopline.local.readiness import get_json, kafka_answers, opensearch_answers, service_ready
from hopline.local.state import ProcessState, StackState, read_state
from hopline.settings import Settings
from indexers.errors import HoplineError
from indexers.opensearch.connect import connect, request
from streams.lag import lag
from streams.topics import Topics
from streams.watcher.status import TREE_NAME, read_statuses

_AGENTS = ("ingest", "embed", "extract", "link")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """An agent's batch is held until these answer; nothing was finished for so long."""

    dependencies: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """`phase` is the supervisor's word; `ready` was asked just now. An existing engine has no pid."""

    name: str
    phase: str
    ready: bool
    url: str
    pid: int | None = None
    restarts: int = 0
    last_exit: int | None = None
    log: str = ""
    waits: Waits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StackReport:
    running: bool
    phase: str
    message: str
    processes: list[ProcessReport]
    #: Records that a group has not committed yet; None where the broker didn't say.
    lag: dict[str, int | None] = field(default_factory=dict)
    vaults: list[dict[str, Any]] = field(default_factory=list)
    data_dir: str = ""
    log_dir: str = ""

    @property
    def healthy(self) -> bool:
        """A vault that is gone, or deletions that wait for a person, are as wrong as a process that is down."""
        return (
            self.running
            and all(process.ready for process in self.processes)
            and not any(is_wrong(root) for root in self.vaults)
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"healthy": self.healthy}


async def report(settings: Settings) -> StackReport:
    folders = StackFolders(settings.local.data_dir)
    state = read_state(folders.state)
    if state is None or not state.supervised:
        left = [] if state is None else state.leftovers
        return StackReport(
            running=False,
            phase="stopped" if state is None or state.phase != "failed" else "failed",
            message=_why_not(state, left),
            processes=[_gone(process) for process in left],
            data_dir=str(folders.data_dir),
            log_dir=str(folders.logs),
        )
    own = await asyncio.gather(*(_look(process) for process in state.processes))
    existing = await _existing(settings)
    agents = [name for name in _AGENTS if any(p.name == name for p in state.processes)]
    lags = dict(zip(agents, await asyncio.gather(*(_lag(settings, name) for name in agents)), strict=True))
    return StackReport(
        running=True,
        phase=state.phase,
        message=state.message,
        processes=[*existing, *own],
        lag=lags,
        vaults=_vaults(state, folders) if agents else [],
        data_dir=str(folders.data_dir),
        log_dir=str(folders.logs),
    )


def waits_of(liveness: Mapping[str, Any]) -> Waits | None:
    """From what `/livez` of an agent says."""
    names = liveness.get("holding_on")
    if not names or not isinstance(names, list):
        return None
    seconds = float(liveness.get("seconds_since_progress") or 0.0)
    return Waits(dependencies=tuple(map(str, names)), seconds=seconds)


def is_wrong(root: Mapping[str, Any]) -> bool:
    return root.get("state") in {"unavailable", "failed"} or bool(root.get("held_removals"))


def _vaults(state: StackState, folders: StackFolders) -> list[dict[str, Any]]:
    """Of the roots that run: one that isn't watched any more has left its last word behind."""
    found = read_statuses(folders.data_dir / "watcher")
    names = {*state.vault_names, TREE_NAME}
    return [root for root in found if not state.vault_names or root.get("root") in names]


def _why_not(state: StackState | None, left: list[ProcessState]) -> str:
    if left:
        names = ", ".join(process.name for process in left)
        return f"the supervisor is gone and left {names}: `hopline down` stops them, `hopline up` starts anew"
    return state.message if state is not None else ""


def phase_of(process: ProcessState) -> str:
    """The supervisor's word, but for a process that has just ended: one not started yet has none to miss."""
    return process.phase if process.alive or process.pid is None else "gone"


async def _look(process: ProcessState) -> ProcessReport:
    alive = process.alive
    probe = {"kafka": kafka_answers, "opensearch": opensearch_answers}.get(process.name, service_ready)
    ready = alive and await probe(process.url)
    asks = alive and process.name in _AGENTS
    liveness = await asyncio.to_thread(get_json, f"{process.url}/livez") if asks else {}
    return ProcessReport(
        name=process.name,
        phase=phase_of(process),
        ready=ready,
        url=process.url,
        pid=process.pid if alive else None,
        restarts=process.restarts,
        last_exit=process.last_exit,
        log=process.log,
        waits=waits_of(liveness),
    )


def _gone(process: ProcessState) -> ProcessReport:
    return ProcessReport(
        name=process.name, phase="left over", ready=False, url=process.url, pid=process.pid, log=process.log
    )


async def _existing(settings: Settings) -> list[ProcessReport]:
    """Engines that were here before us, asked over the settings' own connection."""
    own = own_engines(settings)
    found = []
    if not own.kafka:
        answers = await _lag(settings, _AGENTS[0]) is not None
        found.append(_engine("kafka", settings.kafka_servers, ready=answers))
    if not own.opensearch:
        answers = await _store_answers(settings)
        found.append(_engine("opensearch", settings.opensearch_url, ready=answers))
    return found


def _engine(name: str, url: str, *, ready: bool) -> ProcessReport:
    return ProcessReport(name=name, phase="existing", ready=ready, url=url)


async def _store_answers(settings: Settings) -> bool:
    client = connect(settings.opensearch, settings.opensearch_url)
    try:
        await request(client, "GET", "/_cluster/health")
    except HoplineError:
        return False
    finally:
        await client.close()
    return True


async def _lag(settings: Settings, agent: str) -> int | None:
    topics = Topics(settings.prefix)
    try:
        parts = await lag(settings.kafka, settings.kafka_servers, topics.group(agent), topics.read_by(agent))
    except HoplineError:
        return None
    return sum(part.lag for part in parts)
