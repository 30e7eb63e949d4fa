"""`hopline up`, `status`, `down` with real engines: what works, what is mended, nothing left running."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

from hopline.local.engine_homes import ensure_home
from hopline.local.java import find_java
from hopline.local.processes import ProcessMark
from hopline.settings import LocalSettings
from tests.conftest import Stack
from tests.local_stack import LocalStack, process, wait_until_ready


def test_engines_start_are_watched_and_stop(local: LocalStack) -> None:
    assert local.run("status")[0] == 3

    code, out, err = local.run("up", "--engines-only")
    assert (code, err) == (0, "")
    assert "kafka is ready" in out
    assert "opensearch is ready" in out

    code, status = local.status()
    assert code == 0
    assert status["healthy"] is True
    assert [entry["name"] for entry in status["processes"]] == ["kafka", "opensearch"]

    code, out, _ = local.run("up", "--engines-only")
    assert code == 0
    assert "already running" in out
    assert local.status()[1]["processes"] == status["processes"]

    killed = process(status, "kafka")["pid"]
    os.kill(killed, signal.SIGKILL)
    end = time.monotonic() + 30
    while local.status()[1]["processes"][0]["restarts"] == 0:
        assert time.monotonic() < end
    revived = wait_until_ready(local, "kafka")
    assert revived["pid"] != killed
    assert (revived["restarts"], revived["last_exit"]) == (1, -9)

    code, out, _ = local.run("down")
    assert code == 0
    assert out.index("stopped opensearch") < out.index("hopline is stopped")
    assert local.left_running == []
    assert local.ports_free
    assert local.run("down")[:2] == (0, "hopline isn't running\n")


def test_what_a_killed_supervisor_left_is_found_and_ctrl_c_stops_a_stack_in_the_foreground(
    local: LocalStack,
) -> None:
    local.kafka_only()
    assert local.run("up", "--engines-only")[0] == 0
    state = json.loads((local.data_dir / "run" / "state.json").read_text())
    os.kill(state["supervisor_pid"], signal.SIGKILL)

    supervisor = ProcessMark(pid=state["supervisor_pid"], started=state["supervisor_started"])
    end = time.monotonic() + 10
    while supervisor.alive:
        assert time.monotonic() < end
    code, out, _ = local.run("status")
    assert code == 3
    assert "left kafka" in out

    running = local.begin("up", "--engines-only", "--foreground")
    assert running.stdout is not None
    said = ""
    for line in running.stdout:
        said += line
        if "Ctrl-C stops everything" in line:
            break
    assert "left by a supervisor that is gone" in said
    assert "kafka is ready" in said
    assert f"hopline is ready: 127.0.0.1:{local.kafka_port}" in said
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert "stopped kafka" in out


def test_stale_state_whose_pids_are_others_now_is_no_running_stack(local: LocalStack) -> None:
    """The pid in the notes is this test's own, which is no supervisor: its start time says so."""
    (local.data_dir / "run").mkdir(parents=True)
    stale = {
        "phase": "running",
        "supervisor_pid": os.getpid(),
        "supervisor_started": 1.0,
        "processes": [
            {
                "name": "kafka",
                "phase": "ready",
                "log": "",
                "grace_seconds": 1.0,
                "pid": os.getpid(),
                "started": 1.0,
            }
        ],
    }
    (local.data_dir / "run" / "state.json").write_text(json.dumps(stale))
    assert local.run("status")[0] == 3
    assert local.run("down")[:2] == (0, "hopline isn't running\n")


def test_interrupted_start_leaves_nothing(local: LocalStack) -> None:
    local.kafka_only()
    local.settings["HOPLINE_JAVA_HOME"] = str(slow_java(local.data_dir.parent / "slow-jdk"))
    running = local.begin("up", "--engines-only")
    assert running.stdout is not None
    for line in running.stdout:
        if "starting kafka" in line:
            break
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (130, "")
    assert "stopping what was started" in out
    assert local.run("status")[0] == 3


def slow_java(home: Path) -> Path:
    """A Java home whose broker takes its time: a busy machine may see "starting" and "ready" at once."""
    real = find_java(os.environ).home / "bin" / "java"
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!{sys.executable}\n"
        "import os, sys, time\n"
        "'kafka.Kafka' in sys.argv and time.sleep(30)\n"
        f"os.execv('{real}', ['{real}', *sys.argv[1:]])\n",
        encoding="utf-8",
    )
    java.chmod(0o755)
    return home


def test_engine_that_dies_at_start_shows_the_end_of_its_log(local: LocalStack) -> None:
    local.kafka_only()
    meta = local.data_dir / "kafka" / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.write_text("version=1\ncluster.id=other\nnode.id=77\n", encoding="utf-8")
    code, _, err = local.run("up", "--engines-only")
    assert code == 1
    assert re.search(r"kafka ended at its start \(exit \d+\); \S+kafka\.log ends with:\n.*77", err, re.DOTALL)
    assert local.run("status")[0] == 3


def test_half_downloaded_jar_is_found_and_fetched_again(tmp_path: Path, stack: Stack) -> None:
    """On a copy of the cache; `stack` has filled the original."""
    _ = stack
    java, say = find_java(os.environ), list[str]()
    original = ensure_home("kafka", cache_dir=LocalSettings().cache_dir, java=java, say=say.append)
    copy = tmp_path / original.folder.name
    shutil.copytree(original.folder, copy)
    jar = next(copy.glob("lib/kafka_2*.jar"))
    whole = jar.read_bytes()
    jar.write_bytes(whole[: len(whole) // 3])

    said: list[str] = []
    mended = ensure_home("kafka", cache_dir=tmp_path, java=java, say=said.append)

    assert mended.folder == copy
    assert jar.read_bytes() == whole
    assert f"lib/{jar.name} has {len(whole) // 3} of {len(whole)} bytes; fetching it again" in said[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".kafka.lock", copy.name]
