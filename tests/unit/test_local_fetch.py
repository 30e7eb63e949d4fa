"""Fetching the engines with a Maven that hangs, fails or is interrupted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from hopline.local.engine_homes import ensure_home, template
from hopline.local.java import Java
from indexers.errors import ConfigurationError, HoplineError

#: As the real one: a shell script whose child holds the pipe.
HANGING = """#!/bin/sh
echo "Downloaded from central: https://x/broker-1.jar (7 MB at 1 MB/s)"
sleep 300 & echo $! > {pid}
wait
"""


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    return script


def fetch(cache: Path, said: list[str], seconds: float) -> None:
    java = Java(home=cache / "jdk", version=21)
    ensure_home("kafka", cache_dir=cache, java=java, say=said.append, timeout_seconds=seconds)


def test_a_download_that_hangs_is_ended_and_leaves_nothing(tmp_path: Path, mvn: Path) -> None:
    mvn.write_text(HANGING.format(pid=tmp_path / "pid"))
    cache, said, start = tmp_path / "cache", list[str](), time.monotonic()
    with pytest.raises(HoplineError, match=r"ended after 1 s.*Downloaded from central.*start again"):
        fetch(cache, said, 1.0)
    assert time.monotonic() - start < 20
    assert [path.name for path in cache.iterdir()] == [".kafka.lock"]
    assert "now broker-1.jar (7 MB)" in said[-1]
    child = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 5
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end


def test_a_failing_maven_is_told_in_its_own_words_and_leaves_nothing(tmp_path: Path, mvn: Path) -> None:
    mvn.write_text("#!/bin/sh\necho '[ERROR] Could not resolve host'\nexit 1\n")
    with pytest.raises(HoplineError, match=r"exit 1\): \[ERROR\] Could not resolve host"):
        fetch(tmp_path / "cache", [], 60.0)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".kafka.lock"]


def test_a_template_that_is_nowhere_is_a_broken_installation() -> None:
    with pytest.raises(ConfigurationError, match="install hopline again"):
        template("kafka", "absent.xml")
