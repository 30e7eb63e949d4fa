"""`hopline up`: refuse what can't work, then start the supervisor and tell what it does."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hopline.local.down import stop_leftovers
from hopline.local.folders import StackFolders
from hopline.local.maven import Say
from hopline.local.preflight import (
    available_mb,
    choose_java,
    fetch_homes,
    needed_mb,
    own_engines,
    require_embedder,
    require_extractor,
    require_folders,
    require_memory,
    require_ports,
)
from hopline.local.processes import tail
from hopline.local.services import own_environment
from hopline.local.state import StackPlan, StackState, read_state, write_whole
from hopline.local.supervisor import Supervisor
from hopline.local.vaults import forget, name_vaults, read_remembered, remember
from hopline.settings import Settings
from indexers.errors import ConfigurationError, HoplineError
from indexers.settings import VaultRoot
from indexers.vault.roots import require_distinct

_WAIT_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    vaults: tuple[Path, ...] = ()
    foreground: bool = False
    engines_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpResult:
    """`already`: it was running before and was left as it was."""

    state: StackState
    already: bool = False


def start_stack(settings: Settings, request: UpRequest, say: Say) -> UpResult:
    """Returns when everything is ready; in the foreground, when everything is stopped again.

    Raises HoplineError (ConfigurationError where a setting or an installation mends it); then nothing is
    left running.
    """
    require_folders(settings, own_engines(settings))
    folders = StackFolders(settings.local.data_dir)
    with _lock(folders.lock) as lock:
        if lock is None:
            return _already(request, folders, say)
        stop_leftovers(folders, say)
        folders.state.unlink(missing_ok=True)
        ready, plan = _prepare(settings, request, say)
        if request.foreground:
            return _run_here(ready, plan, folders, say)
        write_whole(folders.plan, plan)
        return _run_in_background(plan, folders, lock, say)


def _already(request: UpRequest, folders: StackFolders, say: Say) -> UpResult:
    state = _await_other(folders, say)
    if state.engines_only and not request.engines_only:
        raise HoplineError("hopline is running with engines only: `hopline down` first, then `hopline up`")
    running = {Path(vault).expanduser().resolve() for vault in state.vaults}
    missing = [root.path for root in name_vaults(request.vaults, ()) if root.path not in running]
    if missing:
        names = ", ".join(map(str, missing))
        raise HoplineError(
            f"hopline is running without {names}: `hopline down`, then `hopline up --vault …` again"
        )
    return UpResult(state=state, already=True)


def _await_other(folders: StackFolders, say: Say) -> StackState:
    """Until the stack that another command starts is ready. Raises HoplineError where that fails."""
    told = False
    while True:
        held = is_held(folders.lock)
        state = read_state(folders.state)
        if state is not None and state.supervised and state.phase == "running":
            return state
        if not held:
            failed = state is not None and state.phase == "failed" and bool(state.message)
            raise HoplineError(
                state.message if state and failed else "the other command has ended; run `hopline up` again"
            )
        if not told:
            say("another command is starting or stopping this stack; waiting for it")
            told = True
        time.sleep(_WAIT_SECONDS)


def forget_vault(settings: Settings, vault: str) -> VaultRoot:
    """Its documents stay in the index. Raises HoplineError while the stack runs."""
    folders = StackFolders(settings.local.data_dir)
    with _lock(folders.lock) as lock:
        if lock is None:
            raise HoplineError("hopline is running: `hopline down` first")
        return forget(settings.local.data_dir, vault)


def _prepare(settings: Settings, request: UpRequest, say: Say) -> tuple[Settings, StackPlan]:
    """Everything that may be refused, cheapest first; the download last."""
    own, engines_only = own_engines(settings), request.engines_only
    added = name_vaults(request.vaults, settings.vaults)
    roots = (*settings.vaults, *added)
    if not roots and not engines_only:
        msg = "no vault is named: `hopline up --vault FOLDER` (of Markdown files), or the setting `vaults`"
        raise ConfigurationError(msg)
    _require_distinct(roots)
    if not engines_only:
        require_embedder(settings.embedder)
        require_extractor(settings.extractor)
    require_memory(available_mb(), needed_mb(settings, own, engines_only=engines_only))
    require_ports(settings, own, engines_only=engines_only)
    if added:
        remember(settings.local.data_dir, (*read_remembered(settings.local.data_dir), *added))
    whole = settings.model_copy(update={"vaults": roots})
    vaults_json = json.dumps(
        [
            root.model_copy(update={"path": root.path.expanduser().resolve()}).model_dump(mode="json")
            for root in roots
        ]
    )
    plan = StackPlan(engines_only=engines_only, vaults_json=vaults_json)
    return whole, plan_engines(plan, whole, say)


def _require_distinct(roots: Sequence[VaultRoot]) -> None:
    try:
        require_distinct(roots)
    except ConfigurationError as exc:
        known = ", ".join(f"{root.name} ({root.path})" for root in roots)
        msg = f"{exc}; they are: {known}; `hopline up --forget-vault NAME` removes one that was named to `up`"
        raise ConfigurationError(msg) from exc


def plan_engines(plan: StackPlan, settings: Settings, say: Say) -> StackPlan:
    import msgspec

    own = own_engines(settings)
    for ours, name, where in (
        (own.kafka, "Kafka", settings.kafka_servers),
        (own.opensearch, "OpenSearch", settings.opensearch_url),
    ):
        if not ours:
            say(f"using the existing {name} at {where}")
    if not own.any:
        return plan
    java = choose_java(settings, own, os.environ)
    say(f"Java {java.version} in {java.home}")
    homes = fetch_homes(settings, own, java, say)
    found = {f"{name}_home": str(home.folder) for name, home in homes.items()}
    versions = {f"{name}_version": home.version for name, home in homes.items()}
    java_found = {"java_home": str(java.home), "java_version": java.version}
    return msgspec.structs.replace(plan, **java_found, **found, **versions)


def _run_here(settings: Settings, plan: StackPlan, folders: StackFolders, say: Say) -> UpResult:
    def tell_ready() -> None:
        state = read_state(folders.state)
        where = (state.api_url or state.kafka_servers) if state is not None else ""
        say(f"hopline is ready: {where}   (Ctrl-C stops everything)")

    failed = asyncio.run(Supervisor(settings, plan, say, on_ready=tell_ready).run())
    state = read_state(folders.state)
    if failed or state is None:
        raise HoplineError(state.message if state and state.message else "the stack failed")
    return UpResult(state=state)


def _run_in_background(plan: StackPlan, folders: StackFolders, lock: IO[str], say: Say) -> UpResult:
    log = folders.log("supervisor")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-P", "-m", "hopline.local.supervise"],
            env=own_environment(plan),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # The lock lives on in the supervisor, and ends with it however it ends.
            pass_fds=(lock.fileno(),),
            start_new_session=True,
        )
    try:
        with _terminated_like_interrupted():
            return UpResult(state=_follow(supervisor, folders, log, say))
    except BaseException:
        # Ctrl-C or a failed start: the supervisor takes down what it had started.
        if supervisor.poll() is None:
            say("stopping what was started")
            supervisor.terminate()
            supervisor.wait()
        raise


def _follow(supervisor: subprocess.Popen[bytes], folders: StackFolders, log: Path, say: Say) -> StackState:
    """Until everything is ready. Raises HoplineError with the reason once a failed start is cleaned up."""
    told: Sequence[tuple[float, str]] = ()
    while True:
        ended = supervisor.poll() is not None
        state = read_state(folders.state)
        if state is not None and state.supervisor_pid == supervisor.pid:
            for seconds, text in state.steps[len(told) :]:
                say(f"{seconds:6.1f} s  {text}")
            told = state.steps
            if state.phase == "running":
                return state
        if ended:
            reason = state.message if state is not None else tail(log)
            raise HoplineError(reason or f"the supervisor ended; see {log}")
        time.sleep(0.1)


@contextlib.contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_held(lock: Path) -> bool:
    """By a supervisor, or by a command that is about to start one."""
    with _lock(lock) as stream:
        return stream is None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[IO[str] | None]:
    """None where another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield stream
