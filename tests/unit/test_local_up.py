"""What `hopline up` refuses or waits for, told without an engine: the other command's notes are written here."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hopline.local import demo, preflight
from hopline.local.folders import StackFolders
from hopline.local.ports import free_ports
from hopline.local.processes import ProcessMark
from hopline.local.state import ProcessState, StackState, write_whole
from hopline.local.status import StackReport
from hopline.local.up import UpRequest, forget_vault, start_stack
from hopline.local.vaults import name_vaults, read_remembered, remember
from hopline.settings import LocalSettings, Settings
from indexers.errors import ConfigurationError, HoplineError
from indexers.settings import EmbedderSettings, OpenSearchSettings, VaultRoot
from streams.settings import KafkaSettings


def settings_of(folder: Path, **more: Any) -> Settings:
    """Engines of somebody else: none of ours is needed to be refused."""
    return Settings(
        local=LocalSettings(data_dir=folder / "data", cache_dir=folder / "cache"),
        kafka=KafkaSettings(bootstrap_servers="127.0.0.1:9"),
        opensearch=OpenSearchSettings(url="http://127.0.0.1:9"),
        **more,
    )


@contextmanager
def other_command(settings: Settings, state: StackState | None) -> Iterator[StackFolders]:
    folders = StackFolders(settings.local.data_dir)
    folders.lock.parent.mkdir(parents=True)
    if state is not None:
        write_whole(folders.state, state)
    with folders.lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folders


def state_of(**more: Any) -> StackState:
    me = ProcessMark.of(os.getpid())
    whole: dict[str, Any] = {"phase": "running", "supervisor_pid": me.pid, "supervisor_started": me.started}
    return StackState(**(whole | more))


def test_up_beside_engines_only_says_what_to_do(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    with other_command(settings, state_of(engines_only=True)):
        with pytest.raises(HoplineError, match=r"running with engines only: `hopline down` first") as refused:
            start_stack(settings, UpRequest(), say=lambda _: None)
        assert start_stack(settings, UpRequest(engines_only=True), say=lambda _: None).already
    assert not isinstance(refused.value, ConfigurationError)


def test_up_beside_another_up_waits_until_that_is_ready(tmp_path: Path) -> None:
    settings, said = settings_of(tmp_path), list[str]()
    with other_command(settings, None) as folders:
        steps = (
            (0.3, state_of(phase="starting")),
            (0.6, state_of(phase="running", api_url="http://127.0.0.1:1")),
        )
        timers = [threading.Timer(after, write_whole, (folders.state, state)) for after, state in steps]
        for timer in timers:
            timer.start()
        begun = time.monotonic()
        result = start_stack(settings, UpRequest(), say=said.append)
        took = time.monotonic() - begun
        for timer in timers:
            timer.join()
    assert (result.already, result.state.api_url) == (True, "http://127.0.0.1:1")
    assert took >= 0.5
    assert said == ["another command is starting or stopping this stack; waiting for it"]


def test_up_beside_another_up_fails_as_that_does(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    folders = StackFolders(settings.local.data_dir)
    folders.lock.parent.mkdir(parents=True)
    lock = folders.lock.open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    write_whole(folders.state, state_of(phase="starting"))

    def fail() -> None:
        write_whole(folders.state, state_of(phase="failed", message="kafka ended at its start"))
        lock.close()

    timer = threading.Timer(0.3, fail)
    timer.start()
    with pytest.raises(HoplineError, match="kafka ended at its start"):
        start_stack(settings, UpRequest(), say=lambda _: None)
    timer.join()


def test_roots_of_one_namespace_are_refused_before_anything_is_remembered(tmp_path: Path) -> None:
    both = [VaultRoot(name=name, path=tmp_path / name) for name in ("a", "b")]
    (tmp_path / "c").mkdir()
    settings = settings_of(tmp_path, vaults=both)
    with pytest.raises(ConfigurationError, match=r"two roots have the same .*--forget-vault NAME"):
        start_stack(settings, UpRequest(vaults=(tmp_path / "c",)), say=lambda _: None)
    assert read_remembered(settings.local.data_dir) == ()


def test_vault_is_forgotten_while_nothing_runs_only(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    (tmp_path / "notes").mkdir()
    (root,) = name_vaults([tmp_path / "notes"], [])
    remember(settings.local.data_dir, [root])
    with (
        other_command(settings, state_of()),
        pytest.raises(HoplineError, match="hopline is running: `hopline down` first"),
    ):
        forget_vault(settings, "notes")
    assert forget_vault(settings, "notes") == root
    assert read_remembered(settings.local.data_dir) == ()


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (EmbedderSettings(device="cuda"), "needs HOPLINE_EMBEDDER__BACKEND=torch"),
        pytest.param(
            EmbedderSettings(backend="torch"),
            r"pip install -e '\.\[gpu\]'",
            marks=pytest.mark.skipif(find_spec("torch") is not None, reason="the extra is installed"),
        ),
    ],
)
def test_embedder_that_cannot_load_is_refused_before_anything_starts(
    tmp_path: Path, embedder: EmbedderSettings, message: str
) -> None:
    settings = settings_of(tmp_path, vaults=[VaultRoot(name="a", path=tmp_path)], embedder=embedder)
    with pytest.raises(ConfigurationError, match=message):
        start_stack(settings, UpRequest(), say=lambda _: None)


@pytest.mark.parametrize(
    ("root", "healthy"),
    [
        ({"state": "watching", "held_removals": None}, True),
        ({"state": "scanning"}, True),
        ({"state": "unavailable"}, False),
        ({"state": "failed"}, False),
        ({"state": "watching", "held_removals": {"count": 20}}, False),
    ],
)
def test_status_is_unhealthy_when_a_vault_is_gone_or_held(root: dict[str, Any], *, healthy: bool) -> None:
    found = StackReport(running=True, phase="running", message="", processes=[], vaults=[root])
    assert found.healthy is healthy


def test_taken_port_names_the_demo_and_how_to_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "default_data_dir", lambda: tmp_path / "hopline")
    first = free_ports(2)
    node = ProcessState(
        name="opensearch", phase="ready", log="", grace_seconds=1.0, url=f"http://127.0.0.1:{first}"
    )
    write_whole(StackFolders(tmp_path / "hopline-demo").state, state_of(processes=[node]))
    settings = Settings(local=LocalSettings(data_dir=tmp_path / "mine", opensearch_port=first))
    with (
        socket.create_server(("127.0.0.1", first + 1)),
        pytest.raises(
            ConfigurationError, match="Hopline's demo: `make demo-down` stops it, or choose another"
        ),
    ):
        preflight.require_ports(
            settings, preflight.OwnEngines(kafka=False, opensearch=True), engines_only=True
        )


def test_demo_that_runs_or_starts_is_not_wiped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "default_data_dir", lambda: tmp_path / "hopline")
    assert not demo.is_running()
    folders = StackFolders(tmp_path / "hopline-demo")
    folders.lock.parent.mkdir(parents=True)
    (tmp_path / "hopline-demo" / "demo.toml").write_text("", encoding="utf-8")
    assert not demo.is_running()
    with folders.lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert demo.is_running()
