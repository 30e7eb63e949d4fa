"""`hopline watch`, `rescan` and `write-file` as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hopline.local.ports import free_ports
from tests.conftest import Stack
from tests.watching import Watched, brief, watched


def hopline(*words: str, env: dict[str, str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "hopline", *words],
        env=os.environ | env,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


def roots(path: Path) -> dict[str, str]:
    return {"HOPLINE_VAULTS": json.dumps([{"name": path.name, "path": str(path)}])}


def test_write_file_writes_standard_input_atomically(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    env = roots(tmp_path / "main")
    done = hopline("write-file", "deep/note.md", env=env, stdin=b"a\x00\xffb")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"deep/note.md: 4 bytes, document ")
    assert (tmp_path / "main/deep/note.md").read_bytes() == b"a\x00\xffb"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("../out.md",), 2, "no path inside a vault"),
        (("note.txt",), 2, "it must end in .md"),
        (("a" * 300 + ".md",), 2, "longer than 255 bytes"),
        (("note.md", "--root", "other"), 2, "the roots are: main"),
    ],
)
def test_write_file_says_what_is_wrong(
    tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "main").mkdir()
    done = hopline("write-file", *words, env=roots(tmp_path / "main"))
    assert (done.returncode, done.stdout) == (code, b"")
    assert message in done.stderr.decode()
    assert list((tmp_path / "main").iterdir()) == []


def test_of_several_roots_one_must_be_chosen(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    settings = [{"name": n, "path": str(tmp_path / n), "agent": n} for n in ("one", "two")]
    env = {"HOPLINE_VAULTS": json.dumps(settings)}
    assert hopline("write-file", "a.md", env=env).returncode == 2
    assert hopline("write-file", "a.md", "--root", "two", env=env, stdin=b"x").returncode == 0
    assert (tmp_path / "two/a.md").read_bytes() == b"x"


@pytest.mark.parametrize(
    "second", [{"name": "one", "agent": "b"}, {"name": "two"}], ids=["name", "namespace"]
)
def test_roots_that_claim_the_same_are_refused(tmp_path: Path, second: dict[str, str]) -> None:
    settings = [{"name": "one", "path": str(tmp_path)}, {"path": str(tmp_path), **second}]
    done = hopline("write-file", "a.md", env={"HOPLINE_VAULTS": json.dumps(settings)})
    assert done.returncode == 2
    assert "two roots have the same" in done.stderr.decode()


@pytest.fixture
async def vault(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Watched]:
    async with watched(stack, prefix, tmp_path) as found:
        yield found


def environment(vault: Watched) -> dict[str, str]:
    root = {"name": "main", "path": str(vault.root)}
    return {
        "HOPLINE_PREFIX": vault.config.prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": vault.config.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": vault.config.opensearch_url,
        "HOPLINE_LOCAL__DATA_DIR": str(vault.config.status_folder.parent),
        "HOPLINE_VAULTS": json.dumps([root]),
    }


@pytest.mark.engines
async def test_rescan_tells_by_its_exit_code_what_happened(vault: Watched) -> None:
    env = environment(vault)
    await vault.index({"gone.md": b"x"})
    held = hopline("rescan", env=env)
    assert (held.returncode, held.stderr) == (3, b"")
    assert "HELD: 1 of 1 documents" in held.stdout.decode()
    assert "hopline rescan --confirm-removals --root main" in held.stdout.decode()
    done = hopline("rescan", "--confirm-removals", "--json", env=env)
    assert done.returncode == 0
    assert json.loads(done.stdout)["main"]["deleted"] == 1
    assert [brief(e) for e in await vault.received(1)] == [("deleted", "gone.md")]
    vault.root.rmdir()
    lost = hopline("rescan", "--confirm-removals", env=env)
    assert lost.returncode == 1
    assert "main: not scanned, nothing deleted" in lost.stdout.decode()


@pytest.mark.engines
async def test_watch_serves_its_health_and_ends_on_sigterm(vault: Watched) -> None:
    (vault.root / "note.md").write_bytes(b"x")
    port = free_ports()
    process = subprocess.Popen(  # noqa: ASYNC220 - the test waits for it anyway
        [sys.executable, "-m", "hopline", "watch"],
        env=os.environ | environment(vault) | {"HOPLINE_WATCHER__HTTP_PORT": str(port)},
        stderr=subprocess.PIPE,
    )
    try:
        assert [brief(e) for e in await vault.received(1)] == [("upserted", "note.md")]
        for page in ("livez", "readyz"):
            assert fetch(port, page)["ok"] is True
        metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()  # noqa: ASYNC210 - nothing else runs
        assert 'hopline_watcher_changes_total{kind="upserted",origin="scan"} 1.0' in metrics
        assert 'hopline_watcher_files{root="main"} 1.0' in metrics
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert time.monotonic() - started < 5
    finally:
        process.kill()
        _, log = process.communicate()
    assert b"Traceback" not in log


def fetch(port: int, page: str) -> dict[str, object]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
        return dict(json.loads(answer.read()))
