"""One process under supervision: started, watched, started again with back-off, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from hopline.local.processes import Launch, ProcessMark, spawn
from hopline.local.state import ProcessPhase, ProcessState

#: Exits within this time count towards the back-off.
WINDOW_SECONDS = 120.0
CRASH_LOOP_EXITS = 5
LONGEST_PAUSE_SECONDS = 30.0


def pause_before_restart(exits_in_window: int) -> float:
    """0.5 s, 1 s, 2 s, … up to 30 s: a short fault costs little, a lasting one doesn't burn the machine."""
    return min(LONGEST_PAUSE_SECONDS, 0.5 * 2.0 ** min(10, max(0, exits_in_window - 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """What to run, how to see that it is ready and how long it may take to stop."""

    launch: Launch
    ready: Callable[[], Awaitable[bool]]
    url: str
    grace_seconds: float
    #: Called before every start (configuration files, ownership).
    prepare: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        return self.launch.name


@dataclass(kw_only=True)
class Supervised:
    spec: ProcessSpec
    clock: Callable[[], float] = time.monotonic
    state: ProcessState = field(init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _exits: deque[float] = field(default_factory=deque, init=False)
    _start_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        spec = self.spec
        self.state = ProcessState(
            name=spec.name,
            phase="waiting",
            log=str(spec.launch.log),
            grace_seconds=spec.grace_seconds,
            url=spec.url,
        )

    def start(self) -> None:
        self.spec.prepare()
        self._process = spawn(self.spec.launch)
        mark = ProcessMark.of(self._process.pid)
        self._become("starting", pid=mark.pid, started=mark.started)

    def ended(self) -> int | None:
        """Exit status (negative: the signal) of a process that isn't there any more; None while it runs."""
        return None if self._process is None else self._process.poll()

    def note_exit(self, status: int) -> float:
        """Plan the restart; gives the pause before it."""
        now = self.clock()
        self._exits.append(now)
        while self._exits and now - self._exits[0] > WINDOW_SECONDS:
            self._exits.popleft()
        pause = pause_before_restart(len(self._exits))
        self._process, self._start_at = None, now + pause
        phase: ProcessPhase = "crash loop" if len(self._exits) >= CRASH_LOOP_EXITS else "restarting"
        self._become(phase, pid=None, restarts=self.state.restarts + 1, last_exit=status)
        return pause

    @property
    def due(self) -> bool:
        return self._process is None and self.clock() >= self._start_at

    def note_ready(self, *, ready: bool) -> None:
        if ready:
            self._become("ready")
        elif self.state.phase == "ready":
            self._become("not ready")

    def ask_to_stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def end(self, deadline: float) -> bool:
        """Wait until the deadline, then kill the process and whatever it started. True: it went by itself."""
        process, self._process = self._process, None
        by_itself = True
        if process is not None:
            try:
                process.wait(max(0.1, deadline - self.clock()))
            except subprocess.TimeoutExpired:
                by_itself = False
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
        self._become("stopped", pid=None)
        return by_itself

    def _become(self, phase: ProcessPhase, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, phase=phase, **changes)
