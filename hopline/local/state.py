"""What the supervisor says about the stack, and what it was told to run: two small files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hopline.local.processes import ProcessMark
from indexers.errors import HoplineError

StackPhase = Literal["starting", "running", "stopping", "stopped", "failed"]
ProcessPhase = Literal["waiting", "starting", "ready", "not ready", "restarting", "crash loop", "stopped"]


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the stack. `started` tells its pid from a later process with the same number."""

    name: str
    phase: ProcessPhase
    log: str
    grace_seconds: float
    url: str = ""
    pid: int | None = None
    started: float = 0.0
    restarts: int = 0
    last_exit: int | None = None

    @property
    def mark(self) -> ProcessMark | None:
        return None if self.pid is None else ProcessMark(pid=self.pid, started=self.started)

    @property
    def alive(self) -> bool:
        mark = self.mark
        return mark is not None and mark.alive


class StackState(msgspec.Struct, frozen=True, kw_only=True):
    """Processes stand in the order of their start; they are stopped from the last to the first."""

    phase: StackPhase
    supervisor_pid: int
    supervisor_started: float
    message: str = ""
    #: Seconds since the start, and what happened.
    steps: list[tuple[float, str]] = []
    processes: list[ProcessState] = []
    kafka_servers: str = ""
    opensearch_url: str = ""
    api_url: str = ""
    vaults: list[str] = []
    #: In the same order; whose statuses count.
    vault_names: list[str] = []
    engines_only: bool = False

    @property
    def supervised(self) -> bool:
        return ProcessMark(pid=self.supervisor_pid, started=self.supervisor_started).alive

    @property
    def leftovers(self) -> list[ProcessState]:
        return [process for process in self.processes if process.alive]


class StackPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `hopline up` found out and the supervisor runs. Empty homes: that engine isn't ours to start."""

    java_home: str = ""
    java_version: int = 0
    kafka_home: str = ""
    kafka_version: str = ""
    opensearch_home: str = ""
    opensearch_version: str = ""
    engines_only: bool = False
    #: JSON of the setting `vaults`: those of the settings and those that were named to `hopline up`.
    vaults_json: str = "[]"


def read_state(path: Path) -> StackState | None:
    """None where no stack was ever started, or the file is another version's."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=StackState)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def read_plan(path: Path) -> StackPlan:
    try:
        return msgspec.json.decode(path.read_bytes(), type=StackPlan)
    except (OSError, msgspec.MsgspecError) as exc:
        raise HoplineError(f"{path} can't be read ({exc}); run `hopline up` again") from exc


def write_whole(path: Path, value: msgspec.Struct | Sequence[msgspec.Struct]) -> None:
    """A reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1))
    temporary.replace(path)
