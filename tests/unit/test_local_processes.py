"""Pids, ports, folders, memory: each refusal names what to change."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopline.local.folders import barrier, require_writable
from hopline.local.ports import LASTING, free_ports, is_free, require_free
from hopline.local.preflight import require_memory
from hopline.local.processes import Launch, OsUser, ProcessMark, spawn, stop, tail
from hopline.local.supervised import pause_before_restart
from indexers.errors import ConfigurationError

STRANGER = OsUser(name="stranger", uid=54_321, gid=54_321)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = (sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)")
    process = spawn(
        Launch(name="s", argv=argv, cwd=tmp_path, env=dict(os.environ), log=tmp_path / "logs" / "s.log")
    )
    yield process
    process.kill()
    process.wait()


def test_running_process_is_alive(sleeper: subprocess.Popen[bytes]) -> None:
    assert ProcessMark.of(sleeper.pid).alive


def test_pid_of_somebody_else_is_not_ours(sleeper: subprocess.Popen[bytes]) -> None:
    mark = ProcessMark.of(sleeper.pid)
    assert not ProcessMark(pid=mark.pid, started=mark.started - 60).alive


def test_ended_process_that_nobody_waited_for_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    mark = ProcessMark.of(sleeper.pid)
    assert stop(mark, grace_seconds=5)
    assert not mark.alive
    assert sleeper.wait() == -signal.SIGTERM


def test_stopping_what_is_gone_is_no_error() -> None:
    assert stop(ProcessMark(pid=2_000_000_000, started=1.0), grace_seconds=0)


def test_stopping_never_touches_a_stranger_with_the_same_pid(sleeper: subprocess.Popen[bytes]) -> None:
    assert stop(ProcessMark(pid=sleeper.pid, started=1.0), grace_seconds=0)
    assert sleeper.poll() is None


def test_process_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    code = f"{deaf}; print('up', flush=True); time.sleep(60)"
    log = tmp_path / "stubborn.log"
    process = spawn(
        Launch(
            name="stubborn", argv=(sys.executable, "-c", code), cwd=tmp_path, env=dict(os.environ), log=log
        )
    )
    while not tail(log):
        assert process.poll() is None
    assert stop(ProcessMark.of(process.pid), grace_seconds=0.1)
    assert process.wait() == -signal.SIGKILL


def test_tail_of_a_log_is_its_end(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("\n".join(str(number) for number in range(100)), encoding="utf-8")
    assert tail(log, lines=3) == "97\n98\n99"


def test_tail_of_no_log_is_empty(tmp_path: Path) -> None:
    assert not tail(tmp_path / "absent.log")


@pytest.mark.parametrize(
    ("exits", "pause"), [(0, 0.5), (1, 0.5), (2, 1.0), (5, 8.0), (7, 30.0), (1_000, 30.0)]
)
def test_pause_before_a_restart_doubles_up_to_half_a_minute(exits: int, pause: float) -> None:
    assert pause_before_restart(exits) == pause


def test_taken_port_names_holder_and_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(ConfigurationError, match=rf"port {port} \(Kafka\) is taken.*HOPLINE_X") as caught:
            require_free(port, use="Kafka", setting="HOPLINE_X")
        assert f"pid {os.getpid()}" in str(caught.value)
    require_free(port, use="Kafka", setting="HOPLINE_X")


def test_port_zero_is_any_port() -> None:
    require_free(0, use="the query service", setting="HOPLINE_API__PORT")


def test_free_ports_are_consecutive() -> None:
    first = free_ports(3)
    assert all(is_free(port) for port in range(first, first + 3))


def test_free_ports_are_none_that_an_outgoing_connection_may_get() -> None:
    """A broker that restarted found its port taken by a client that had kept asking for it."""
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        given = asking.getsockname()[1]
    assert given not in LASTING
    assert {free_ports() in LASTING for _ in range(50)} == {True}


def test_too_little_memory_says_how_much_is_needed() -> None:
    require_memory(2_000, 2_000)
    with pytest.raises(ConfigurationError, match="1999 MiB are free and the stack needs about 2000 MiB"):
        require_memory(1_999, 2_000)


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="HOPLINE_LOCAL__DATA_DIR"):
        require_writable(tmp_path / "file", setting="HOPLINE_LOCAL__DATA_DIR")


def test_first_folder_that_keeps_the_user_out_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    tmp_path.chmod(0o755)
    closed.chmod(0o700)
    outer = barrier(tmp_path, STRANGER)
    assert barrier(closed / "inner", STRANGER) == (outer or closed)


def test_nobody_is_kept_out_where_no_other_user_runs() -> None:
    assert barrier(Path("/root/anything"), None) is None
