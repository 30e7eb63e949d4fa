"""Processes by pid and start time: a pid that was given to somebody else is never mistaken for ours."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

#: The system derives start times from the boot time, which moves a little when the clock is set.
_START_TOLERANCE_SECONDS = 3.0
_ROTATE_BYTES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """One process for all time: pids come back, pid and start time don't."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> ProcessMark:
        return cls(pid=pid, started=psutil.Process(pid).create_time())

    @property
    def alive(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return abs(process.create_time() - self.started) < _START_TOLERANCE_SECONDS
        except psutil.Error:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class OsUser:
    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """All that starting one process takes."""

    name: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    user: OsUser | None = None


def engine_user(name: str) -> OsUser | None:
    """OpenSearch refuses root: there another user runs it. None where we are somebody else already."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(name)
    return OsUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def spawn(launch: Launch) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C reaches the supervisor alone, which stops the others in order."""
    launch.log.parent.mkdir(parents=True, exist_ok=True)
    if launch.log.exists() and launch.log.stat().st_size > _ROTATE_BYTES:
        launch.log.replace(launch.log.with_name(launch.log.name + ".1"))
    user = launch.user
    with launch.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - argv built by this package
            launch.argv,
            cwd=launch.cwd,
            env=dict(launch.env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else [],
        )


def stop(mark: ProcessMark, *, grace_seconds: float, first: signal.Signals = signal.SIGTERM) -> bool:
    """Ask, wait, then kill. True when the process is gone (or was gone before)."""
    for number, patience in ((first, grace_seconds), (signal.SIGKILL, 5.0)):
        if not mark.alive:
            return True
        try:
            os.kill(mark.pid, number)
        except ProcessLookupError:
            return True
        _wait_gone(mark, patience)
    return not mark.alive


def _wait_gone(mark: ProcessMark, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while mark.alive and time.monotonic() < deadline:
        time.sleep(0.05)


def tail(log: Path, lines: int = 15) -> str:
    """Last lines of a log for an error message."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 16_384))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(line[:300] for line in text.splitlines()[-lines:])
