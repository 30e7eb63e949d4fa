"""The process that owns all others: starts them in order, keeps them running, stops them in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from hopline.local.folders import StackFolders
from hopline.local.maven import Say
from hopline.local.processes import ProcessMark, tail
from hopline.local.scraping import target_groups, write_targets
from hopline.local.services import engine_specs, own_environment, service_specs
from hopline.local.state import StackPhase, StackPlan, StackState, write_whole
from hopline.local.supervised import ProcessSpec, Supervised
from hopline.settings import Settings
from indexers.errors import HoplineError

_POLL_SECONDS = 0.2
_READY_CHECK_SECONDS = 5.0
#: What our own commands end with when a setting is refused.
_EXIT_REFUSED = 2
_log = structlog.get_logger("hopline.supervisor")


class Supervisor:
    """Runs until it is asked to stop. Whatever happens, nothing it started outlives it."""

    def __init__(
        self, settings: Settings, plan: StackPlan, say: Say, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._say = say
        self._on_ready = on_ready
        self._folders = StackFolders(settings.local.data_dir)
        self._children: list[Supervised] = []
        self._steps: list[tuple[float, str]] = []
        self._began = time.monotonic()
        self._stop = asyncio.Event()
        self._mark = ProcessMark.of(os.getpid())
        self._phase: StackPhase = "starting"
        self._message = ""

    async def run(self) -> int:
        """0: stopped as asked; 1: the start failed (`message` of the state says why)."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        final: tuple[StackPhase, str] = ("stopped", "")
        try:
            await self._start_all()
            if not self._stop.is_set():
                self._write("running")
                self._on_ready()
                await self._keep_running()
        except (HoplineError, OSError, subprocess.SubprocessError) as exc:
            final = ("failed", str(exc))
            _log.error("stack.start_failed", reason=str(exc))
        finally:
            self._write("stopping", final[1])
            await self._stop_all()
            self._write(*final)
        return 0 if final[0] == "stopped" else 1

    async def _start_all(self) -> None:
        self._write("starting")
        engines = engine_specs(self._settings, self._plan)
        await self._start_group(engines)
        if self._plan.engines_only or self._stop.is_set():
            return
        await self._bootstrap()
        services = service_specs(self._settings, self._plan)
        write_targets(self._folders.targets, target_groups(services))
        await self._start_group(services)

    async def _start_group(self, specs: Sequence[ProcessSpec]) -> None:
        """Start all, then wait for each: they get ready side by side."""
        group = [Supervised(spec=spec) for spec in specs]
        self._children.extend(group)
        for child in group:
            if self._stop.is_set():
                return
            self._step(f"starting {child.spec.name} ({child.spec.url})")
            await asyncio.to_thread(child.start)
        for child in group:
            await self._await_ready(child)

    async def _await_ready(self, child: Supervised) -> None:
        name, log = child.spec.name, child.spec.launch.log
        limit = self._settings.local.start_timeout_seconds
        deadline = time.monotonic() + limit
        while not self._stop.is_set():
            status = child.ended()
            if status is not None:
                raise HoplineError(_why_ended(name, status, log))
            if await child.spec.ready():
                child.note_ready(ready=True)
                self._step(f"{name} is ready")
                return
            if time.monotonic() > deadline:
                late = f"{name} isn't ready after {limit:.0f} s (HOPLINE_LOCAL__START_TIMEOUT_SECONDS)"
                raise HoplineError(f"{late}; {log} ends with:\n{tail(log)}")
            await self._pause(_POLL_SECONDS)

    async def _bootstrap(self) -> None:
        """Key, topics, indices: in a process of its own, which loads the model to learn its vector space."""
        if self._stop.is_set():
            return
        self._step("creating topics and indices")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "hopline.local.bootstrap"),
            env=own_environment(self._plan),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._settings.local.start_timeout_seconds):
                _, errors = await process.communicate()
        except TimeoutError as exc:
            raise HoplineError(
                "topics and indices could not be created in time; are the engines overloaded?"
            ) from exc
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            log = self._folders.log("bootstrap")
            await asyncio.to_thread(log.write_bytes, errors)
            said = errors.decode(errors="replace").strip().splitlines() or [_exit(process.returncode or 0)]
            more = f"; see {log}" if len(said) > 1 else ""
            raise HoplineError(f"topics and indices could not be created: {said[-1]}{more}")

    async def _keep_running(self) -> None:
        checked = time.monotonic()
        while not self._stop.is_set():
            before = [child.state for child in self._children]
            for child in self._children:
                await self._tend(child)
            if time.monotonic() - checked > _READY_CHECK_SECONDS or self._anyone_starting():
                checked = time.monotonic()
                await self._check_ready()
            if before != [child.state for child in self._children]:
                self._write("running")
            await self._pause(_POLL_SECONDS * 2)

    async def _tend(self, child: Supervised) -> None:
        status = child.ended()
        if status is not None:
            pause = child.note_exit(status)
            state = child.state
            self._step(f"{state.name} ended ({_exit(status)}); starting it again in {pause:.1f} s")
            _log.warning(
                "process.ended", name=state.name, status=status, restarts=state.restarts, phase=state.phase
            )
        elif child.due:
            try:
                await asyncio.to_thread(child.start)
            except (OSError, HoplineError, subprocess.SubprocessError) as exc:
                child.note_exit(-1)
                _log.error("process.start_failed", name=child.spec.name, reason=str(exc))

    def _anyone_starting(self) -> bool:
        return any(child.state.phase in {"starting", "not ready"} for child in self._children)

    async def _check_ready(self) -> None:
        running = [child for child in self._children if child.ended() is None and not child.due]
        answers = await asyncio.gather(*(child.spec.ready() for child in running))
        for child, ready in zip(running, answers, strict=True):
            child.note_ready(ready=ready)

    async def _stop_all(self) -> None:
        """The last started first. The agents drain side by side; the engines end when nobody needs them."""
        services = [
            child for child in reversed(self._children) if child.spec.name not in {"kafka", "opensearch"}
        ]
        engines = [child for child in reversed(self._children) if child not in services]
        watchers = [child for child in services if child.spec.name == "watch"]
        others = [child for child in services if child not in watchers]
        for group in (watchers, others, engines):
            for child in group:
                child.ask_to_stop()
            deadline = time.monotonic() + max((child.spec.grace_seconds for child in group), default=0.0)
            for child in group:
                if child.state.pid is None:
                    continue
                by_itself = await asyncio.to_thread(child.end, deadline)
                self._step(f"stopped {child.spec.name}" + ("" if by_itself else " (it had to be killed)"))
        write_targets(self._folders.targets, ())

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    def _step(self, text: str) -> None:
        self._steps.append((round(time.monotonic() - self._began, 1), text))
        del self._steps[:-200]
        self._say(text)
        self._write(None)

    def _write(self, phase: StackPhase | None, message: str = "") -> None:
        if phase is not None:
            self._phase, self._message = phase, message
        settings, children = self._settings, [child.state for child in self._children]
        state = StackState(
            phase=self._phase,
            message=self._message,
            supervisor_pid=self._mark.pid,
            supervisor_started=self._mark.started,
            steps=self._steps,
            processes=children,
            kafka_servers=settings.kafka_servers,
            opensearch_url=settings.opensearch_url,
            api_url=next((child.url for child in children if child.name == "api"), ""),
            vaults=[str(root.path) for root in settings.vaults],
            vault_names=[root.name for root in settings.vaults],
            engines_only=self._plan.engines_only,
        )
        write_whole(self._folders.state, state)


def _why_ended(name: str, status: int, log: Path) -> str:
    """A refused setting is one line of the process; anything else needs the end of its log."""
    end = tail(log)
    last = end.strip().rpartition("\n")[2].strip()
    if status == _EXIT_REFUSED and last.startswith("hopline: "):
        return f"{name}: {last.removeprefix('hopline: ')}"
    return f"{name} ended at its start ({_exit(status)}); {log} ends with:\n{end}"


def _exit(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit {status}"
