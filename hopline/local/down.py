"""`hopline down`: the supervisor stops all in order; where it is gone, its notes say what is left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence

import msgspec

from hopline.local.folders import StackFolders
from hopline.local.maven import Say
from hopline.local.processes import ProcessMark, stop
from hopline.local.scraping import write_targets
from hopline.local.state import StackState, read_state, write_whole
from indexers.errors import HoplineError

#: Beyond the graces of the processes themselves.
_SUPERVISOR_SLACK_SECONDS = 15.0


def stop_stack(folders: StackFolders, say: Say) -> bool:
    """True when something was stopped. Calling it again does no harm."""
    state = read_state(folders.state)
    if state is None:
        return False
    supervised = state.supervised
    if supervised:
        _stop_supervisor(state, folders, say)
    stopped = stop_leftovers(folders, say)
    return supervised or stopped


def stop_leftovers(folders: StackFolders, say: Say) -> bool:
    """Processes whose supervisor is gone (it was killed): by pid and start time, the last started first."""
    state = read_state(folders.state)
    if state is None or state.supervised:
        return False
    left = list(reversed(state.leftovers))
    for process in left:
        mark = process.mark
        if mark is not None and mark.alive:
            say(f"stopping {process.name} (pid {mark.pid}), left by a supervisor that is gone")
            if not stop(mark, grace_seconds=process.grace_seconds):
                raise HoplineError(f"{process.name} (pid {mark.pid}) can't be stopped; stop it by hand")
    if left or state.phase not in {"stopped", "failed"}:
        ended = [msgspec.structs.replace(p, phase="stopped", pid=None) for p in state.processes]
        write_whole(folders.state, msgspec.structs.replace(state, phase="stopped", processes=ended))
        write_targets(folders.targets, ())
    return bool(left)


def _stop_supervisor(state: StackState, folders: StackFolders, say: Say) -> None:
    mark = ProcessMark(pid=state.supervisor_pid, started=state.supervisor_started)
    with contextlib.suppress(ProcessLookupError):
        os.kill(mark.pid, signal.SIGTERM)
    patience = sum(process.grace_seconds for process in state.processes) + _SUPERVISOR_SLACK_SECONDS
    deadline = time.monotonic() + patience
    told: Sequence[tuple[float, str]] = state.steps
    while mark.alive and time.monotonic() < deadline:
        told = _tell_new(folders, told, say)
        time.sleep(0.1)
    _tell_new(folders, told, say)
    if mark.alive:
        say("the supervisor doesn't stop; killing it")
        stop(mark, grace_seconds=0.0, first=signal.SIGKILL)


def _tell_new(
    folders: StackFolders, told: Sequence[tuple[float, str]], say: Say
) -> Sequence[tuple[float, str]]:
    state = read_state(folders.state)
    if state is None:
        return told
    for _, text in state.steps[len(told) :]:
        say(text)
    return state.steps
