"""`hopline up`, `status`, `down` with real engines: what works, what is refused, nothing left running."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from hopline.local.engine_homes import ensure_home
from hopline.local.java import find_java
from hopline.local.ports import free_ports, is_free
from hopline.local.processes import ProcessMark
from hopline.settings import LocalSettings
from tests.conftest import Stack

REPOSITORY = Path(__file__).resolve().parents[2]
#: Refuses connections: what must not be asked is never reached.
NOWHERE = "http://127.0.0.1:9"


@dataclass(kw_only=True)
class LocalStack:
    """The command line on a data folder and ports of its own."""

    data_dir: Path
    kafka_port: int
    opensearch_port: int
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        return dict(os.environ) | {
            "PYTHONPATH": str(REPOSITORY),
            "HOPLINE_LOCAL__DATA_DIR": str(self.data_dir),
            "HOPLINE_LOCAL__KAFKA_PORT": str(self.kafka_port),
            "HOPLINE_LOCAL__OPENSEARCH_PORT": str(self.opensearch_port),
            "HOPLINE_LOCAL__OPENSEARCH_HEAP_MB": "512",
            "HOPLINE_LOCAL__SHORT_LIVED": "true",
            **self.settings,
        }

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "hopline", *arguments],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.begin(*arguments)
        out, err = process.communicate(timeout=150)
        return process.returncode, out, err

    def status(self) -> tuple[int, dict[str, Any]]:
        code, out, err = self.run("status", "--json")
        assert out, err
        return code, json.loads(out)

    def kafka_only(self) -> LocalStack:
        """The cheaper half: OpenSearch counts as an existing one."""
        self.settings["HOPLINE_OPENSEARCH__URL"] = NOWHERE
        return self

    @property
    def left_running(self) -> list[str]:
        """Processes whose command line names the data folder, or that still say they are its supervisor."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or [])
            if str(self.data_dir) in line and process.pid != os.getpid():
                found.append(line[:200])
        return found

    @property
    def ports_free(self) -> bool:
        return is_free(self.kafka_port) and is_free(self.opensearch_port)


@pytest.fixture
def local() -> Iterator[LocalStack]:
    # Not pytest's own folder: it is closed to the user that runs OpenSearch.
    folder = Path(tempfile.mkdtemp(prefix="hopline-stack-"))
    folder.chmod(0o755)
    first = free_ports(2)
    stack = LocalStack(
        data_dir=folder / "data",
        kafka_port=first,
        opensearch_port=free_ports(2, without=(first, first + 1)),
    )
    try:
        yield stack
        assert stack.left_running == []
    finally:
        stack.run("down")
        shutil.rmtree(folder, ignore_errors=True)


def process(status: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in status["processes"] if entry["name"] == name)
    return found


def wait_until_ready(local: LocalStack, name: str, seconds: float = 60) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while True:
        _, status = local.status()
        if process(status, name)["ready"]:
            return process(status, name)
        assert time.monotonic() < end, status
        time.sleep(0.5)


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


def test_killed_supervisor_leaves_nothing_that_up_and_down_do_not_find(local: LocalStack) -> None:
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

    code, out, _ = local.run("up", "--engines-only")
    assert code == 0
    assert "left by a supervisor that is gone" in out
    code, out, _ = local.run("down")
    assert code == 0


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


def test_foreground_stops_everything_on_interrupt(local: LocalStack) -> None:
    local.kafka_only()
    running = local.begin("up", "--engines-only", "--foreground")
    assert running.stdout is not None
    said = ""
    for line in running.stdout:
        said += line
        if "Ctrl-C stops everything" in line:
            break
    assert "kafka is ready" in said
    assert f"hopline is ready: 127.0.0.1:{local.kafka_port}" in said
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert "stopped kafka" in out


def test_interrupted_start_leaves_nothing(local: LocalStack) -> None:
    local.kafka_only()
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


def test_engine_that_dies_at_start_shows_the_end_of_its_log(local: LocalStack) -> None:
    local.kafka_only()
    meta = local.data_dir / "kafka" / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.write_text("version=1\ncluster.id=other\nnode.id=77\n", encoding="utf-8")
    code, _, err = local.run("up", "--engines-only")
    assert code == 1
    assert re.search(r"kafka ended at its start \(exit \d+\); \S+kafka\.log ends with:\n.*77", err, re.DOTALL)
    assert local.run("status")[0] == 3


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        pytest.param({"HOPLINE_JAVA_HOME": "/nowhere"}, (), r"/nowhere: no bin/java", id="no java"),
        pytest.param(
            {"PATH": "/nowhere", "HOPLINE_LOCAL__CACHE_DIR": "{data}/cache"},
            (),
            "apt-get install maven",
            id="no maven",
        ),
        pytest.param({"HOPLINE_LOCAL__KAFKA_HEAP_MB": "99999999"}, (), "too little memory: ", id="memory"),
        pytest.param(
            {"HOPLINE_LOCAL__DATA_DIR": "/dev/null/x"}, (), "can't write to /dev/null/x", id="folder"
        ),
        pytest.param({"HOPLINE_LOCAL__OPENSEARCH_USER": "no-such"}, (), "no user 'no-such'", id="user"),
        pytest.param({}, ("--vault", "/nowhere"), "--vault /nowhere: no folder there", id="vault"),
        pytest.param({"HOPLINE_BOGUS": "1"}, (), "HOPLINE_BOGUS is no setting", id="setting"),
    ],
)
def test_what_cannot_work_is_refused_in_words(
    local: LocalStack, settings: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    if "HOPLINE_LOCAL__OPENSEARCH_USER" in settings and os.geteuid() != 0:
        pytest.skip("only root starts OpenSearch as another user")
    local.settings |= {name: value.format(data=local.data_dir) for name, value in settings.items()}
    code, _, err = local.run("up", "--engines-only", *arguments)
    assert code == 2
    assert re.search(message, err)
    assert "Traceback" not in err


def test_no_vault_says_how_to_name_one(local: LocalStack) -> None:
    code, _, err = local.run("up")
    assert code == 2
    assert "`hopline up --vault FOLDER`" in err


def test_taken_port_is_named_with_its_holder(local: LocalStack) -> None:
    with socket.create_server(("127.0.0.1", local.opensearch_port)):
        code, _, err = local.run("up", "--engines-only")
    assert code == 2
    held = f"port {local.opensearch_port} (OpenSearch) is taken by "
    assert held in err
    assert f"pid {os.getpid()}" in err
    assert "HOPLINE_LOCAL__OPENSEARCH_PORT" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts OpenSearch as another user")
def test_folder_that_the_engines_user_cannot_enter_is_refused(local: LocalStack) -> None:
    closed = local.data_dir.parent / "closed"
    closed.mkdir(mode=0o700)
    local.settings["HOPLINE_LOCAL__DATA_DIR"] = str(closed / "data")
    code, _, err = local.run("up", "--engines-only")
    assert code == 2
    assert f"can't enter {closed}" in err


def test_existing_engines_are_used_and_none_is_started(local: LocalStack, stack: Stack) -> None:
    local.settings |= {
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
    }
    code, out, err = local.run("up", "--engines-only")
    assert (code, err) == (0, "")
    assert f"using the existing Kafka at {stack.kafka_servers}" in out
    code, status = local.status()
    assert code == 0
    assert [(p["name"], p["phase"], p["ready"]) for p in status["processes"]] == [
        ("kafka", "existing", True),
        ("opensearch", "existing", True),
    ]
    assert local.run("down")[0] == 0


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


def test_named_vault_is_indexed_searched_and_remembered(local: LocalStack, stack: Stack, prefix: str) -> None:
    vault = local.data_dir.parent / "my notes"
    vault.mkdir()
    (vault / "ferry.md").write_text("# Ferry\nThe ferry stopped: INC-2041, see [[fog]].\n", encoding="utf-8")
    local.settings |= {
        "HOPLINE_PREFIX": prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
        "HOPLINE_API__PORT": str(free_ports()),
    }
    code, out, err = local.run("up", "--vault", str(vault))
    assert (code, err) == (0, "")
    assert str(vault) in out

    end = time.monotonic() + 60
    while not (found := json.loads(local.run("search", "INC-2041", "--json")[1])["hits"]):
        assert time.monotonic() < end
    assert [hit["path"] for hit in found] == ["ferry.md"]
    assert stat.S_IMODE((local.data_dir / "api-key").stat().st_mode) == 0o600

    code, status = local.status()
    assert code == 0
    assert sorted(status["lag"]) == ["embed", "extract", "ingest", "link"]
    assert [root["root"] for root in status["vaults"]] == ["my-notes"]
    os.kill(process(status, "api")["pid"], signal.SIGKILL)
    assert wait_until_ready(local, "api")["restarts"] == 1

    other = local.data_dir.parent / "other"
    other.mkdir()
    code, _, err = local.run("up", "--vault", str(other))
    assert code == 1
    assert f"running without {other}" in err

    assert local.run("verify")[0] == 0
    assert local.run("down")[0] == 0


def test_two_vaults_named_at_once_are_both_found_with_the_one_key(
    local: LocalStack, stack: Stack, prefix: str
) -> None:
    folders = [local.data_dir.parent / name for name in ("alpha", "beta")]
    for folder in folders:
        folder.mkdir()
        (folder / "note.md").write_text(f"# {folder.name}\nThe word is quokka.\n", encoding="utf-8")
    local.settings |= {
        "HOPLINE_PREFIX": prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
        "HOPLINE_API__PORT": str(free_ports()),
    }
    code, _, err = local.run("up", "--vault", str(folders[0]), "--vault", str(folders[1]))
    assert (code, err) == (0, "")
    end = time.monotonic() + 60
    while len(found := json.loads(local.run("search", "quokka", "--json")[1])["hits"]) < len(folders):
        assert time.monotonic() < end
    assert sorted(hit["title"] for hit in found) == ["alpha", "beta"]

    assert local.run("up", "--forget-vault", "beta")[0] == 1
    folders[1].rename(local.data_dir.parent / "away")
    end = time.monotonic() + 60
    while local.run("status")[0] != 1:
        assert time.monotonic() < end
        time.sleep(1)
    code, out, _ = local.run("status")
    assert (code, "vault beta: UNAVAILABLE" in out, str(local.data_dir / "logs") in out) == (1, True, True)

    assert local.run("down")[0] == 0
    assert local.run("up", "--forget-vault", "beta")[0] == 0
