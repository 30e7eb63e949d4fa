"""A stack of its own for the example vault: own data, own ports, started anew each time."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopline.local.down import stop_stack
from hopline.local.folders import StackFolders
from hopline.local.maven import Say
from hopline.local.ports import free_ports, is_free
from hopline.local.up import is_held
from hopline.settings import ENV_PREFIX, LocalSettings, default_data_dir
from indexers.errors import ConfigurationError, HoplineError
from search_api.settings import ApiSettings
from streams.rebuild import AGENTS

PREFIX = "hopline-demo"
#: Top-level name under which a wheel carries the repository's `examples/vault/` (setup.py).
PACKAGE = "hopline_examples"
_PATIENCE_SECONDS = 180.0
#: Those that searches wait for.
SEARCH_AGENTS = ("ingest", "embed")
#: Settings of the engines and of the machine; all others would make the demo another one on every machine.
_KEPT = (
    "HOPLINE_JAVA_HOME",
    "HOPLINE_KAFKA__",
    "HOPLINE_OPENSEARCH__",
    "HOPLINE_EMBEDDER__",
    "HOPLINE_EXTRACTOR__",
    "HOPLINE_LOCAL__CACHE_DIR",
    "HOPLINE_LOCAL__OPENSEARCH_USER",
    "HOPLINE_LOCAL__SHORT_LIVED",
    "HOPLINE_LOCAL__START_TIMEOUT_SECONDS",
)
#: Sightings in a row of "nothing waits": the agents' lags aren't read at one instant, and what was written
#: is found after the engine's refresh of one second.
_QUIET_SIGHTINGS = 4


def demo_dir() -> Path:
    """Beside the data of a real stack, never in it."""
    return default_data_dir().with_name("hopline-demo")


def example_vault() -> Path:
    """Of this checkout, else of the installed package."""
    checkout = Path(__file__).resolve().parents[2] / "examples" / "vault"
    installed = importlib.util.find_spec(PACKAGE)
    packaged: Sequence[str] = (installed and installed.submodule_search_locations) or ()
    for vault in (checkout, *map(Path, packaged)):
        if vault.is_dir():
            return vault
    raise ConfigurationError(
        f"the example vault is neither in {checkout} nor in the installed package: install hopline again"
    )


def config_file() -> Path:
    return demo_dir() / "demo.toml"


def left_out(env: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that the demo's commands don't see, sorted: in a shell they go before its configuration file."""
    names = {name: name.upper() for name in env}  # settings are read in any case
    return tuple(
        sorted(
            name
            for name, upper in names.items()
            if upper.startswith(ENV_PREFIX) and upper != "HOPLINE_CONFIG" and not upper.startswith(_KEPT)
        )
    )


def is_running() -> bool:
    """It may still be starting: `hopline up` waits for that."""
    return config_file().is_file() and is_held(StackFolders(demo_dir()).lock)


def begin_anew(say: Say) -> None:
    """Stop an earlier demo and remove what it left; nothing else is touched."""
    stop_demo(say)
    shutil.rmtree(demo_dir(), ignore_errors=True)
    demo_dir().mkdir(parents=True)
    demo_dir().chmod(0o755)
    config_file().write_text(_configuration(), encoding="utf-8")


def stop_demo(say: Say) -> bool:
    return stop_stack(StackFolders(demo_dir()), say)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCommands:
    """Runs `hopline …` as its user would, on the demo's configuration."""

    env: Mapping[str, str]

    @classmethod
    def on_demo(cls) -> DemoCommands:
        aside = left_out(os.environ)
        kept = {name: value for name, value in os.environ.items() if name not in aside}
        source = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        return cls(env=kept | {"HOPLINE_CONFIG": str(config_file()), "PYTHONPATH": path})

    def show(self, *arguments: str) -> None:
        """The command's output is for the reader. Raises HoplineError when it fails."""
        done = subprocess.run(self._argv(arguments), env=self.env, check=False)  # noqa: S603 - ourselves
        if done.returncode != 0:
            raise HoplineError(f"`hopline {' '.join(arguments)}` failed (exit {done.returncode})")

    def answer(self, *arguments: str) -> Any:
        """The JSON of a command with --json; a non-zero exit is part of the answer (`status`)."""
        argv = self._argv((*arguments, "--json"))
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - ourselves
        try:
            return json.loads(done.stdout)
        except ValueError as exc:
            raise HoplineError(f"`hopline {' '.join(arguments)}`: {done.stderr.strip()}") from exc

    def _argv(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-P", "-m", "hopline", *arguments]


def wait_searchable(commands: DemoCommands, say: Say) -> int:
    """Until the first scan is over and no note waits for its words or vectors; gives the number of files."""
    status = _wait(commands, say, SEARCH_AGENTS, "searchable")
    return sum(int(root["files"]) for root in status["vaults"])


def wait_extracted(commands: DemoCommands, say: Say) -> None:
    """Until no note waits for its entities."""
    _wait(commands, say, AGENTS, "extracted")


def is_done(status: Mapping[str, Any], agents: Sequence[str]) -> bool:
    # The memory tree is watched without a scan of its own; a root is scanned first, then watched.
    looked = [root["last_scan"] or root["state"] == "watching" for root in status["vaults"]]
    scanned = bool(looked) and all(looked)
    return scanned and all(status["lag"].get(agent) == 0 for agent in agents)


def _wait(commands: DemoCommands, say: Say, agents: Sequence[str], what: str) -> Mapping[str, Any]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    told, quiet = "", 0
    while time.monotonic() < deadline:
        status: Mapping[str, Any] = commands.answer("status")
        progress = _progress(status, agents)
        if progress != told:
            say(f"  {progress}")
            told = progress
        quiet = quiet + 1 if is_done(status, agents) else 0
        if quiet == _QUIET_SIGHTINGS:
            return status
        time.sleep(0.5)
    logs = demo_dir() / "logs"
    raise HoplineError(f"not {what} after {_PATIENCE_SECONDS:.0f} s ({told}); see {logs}")


def _progress(status: Mapping[str, Any], agents: Sequence[str]) -> str:
    scans = [f"{root['state']} {root['root']}: {root['files']} files" for root in status["vaults"]]
    lags = {agent: status["lag"].get(agent) for agent in agents}
    waiting = [f"{agent} has {behind} waiting" for agent, behind in lags.items() if behind]
    return "; ".join([*scans, *waiting]) or "waiting for the watcher"


def _configuration() -> str:
    """The usual ports where they are free, so that a running stack is never in the way."""
    taken: set[int] = set()

    def choose(usual: int, count: int) -> int:
        wanted = range(usual, usual + count)
        free = all(is_free(port) and port not in taken for port in wanted)
        first = usual if free else free_ports(count, without=taken)
        taken.update(range(first, first + count))
        return first

    usual = LocalSettings()
    kafka, opensearch = choose(usual.kafka_port, 2), choose(usual.opensearch_port, 2)
    api = choose(ApiSettings().port, 1)
    # JSON strings are TOML strings.
    return "\n".join(
        (
            f"prefix = {json.dumps(PREFIX)}",
            f"[local]\ndata_dir = {json.dumps(str(demo_dir()))}",
            f"kafka_port = {kafka}\nopensearch_port = {opensearch}",
            f"[api]\nport = {api}",
            f"[[vaults]]\nname = {json.dumps('example')}\npath = {json.dumps(str(example_vault()))}",
            "",
        )
    )
