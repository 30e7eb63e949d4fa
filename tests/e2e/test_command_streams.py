"""Streams and arguments as shells hand them over: never a traceback, one line at most, one exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HOPLINE = f"'{sys.executable}' -m hopline"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """In bash, with `hopline` for the command, a vault that is empty and no engine anywhere."""
    (folder / "vault").mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("hopline", HOPLINE)],
        env=dict(os.environ)
        | {
            "PYTHONPATH": str(REPOSITORY),
            "HOPLINE_LOCAL__DATA_DIR": str(folder / "data"),
            "HOPLINE_LOCAL__KAFKA_PORT": "9",
            "HOPLINE_LOCAL__OPENSEARCH_PORT": "9",
            "HOPLINE_VAULTS": json.dumps([{"name": "one", "path": str(folder / "vault")}]),
        },
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "code", "lines"),
    [
        pytest.param("hopline settings >&-", 0, 0, id="no output"),
        pytest.param("hopline settings <&- >&- 2>&-", 0, 0, id="no streams"),
        pytest.param("hopline settings > /dev/full", 1, 1, id="full, much"),
        pytest.param("hopline --version > /dev/full", 1, 1, id="full, little"),
        pytest.param("hopline settings --json > /dev/full", 1, 1, id="full, JSON"),
        pytest.param("hopline status > /dev/full", 1, 1, id="full, line by line"),
        pytest.param("hopline settings | head -1", 0, 0, id="gone reader"),
        pytest.param("hopline --help | true", 0, 0, id="gone reader of help"),
        pytest.param("hopline status | true", 3, 0, id="gone reader of an answer by exit code"),
        pytest.param("hopline search $'\\xff'", 2, 1, id="query"),
        pytest.param("hopline read $'\\xff.md'", 2, 1, id="path"),
        pytest.param("printf '\\xff\\xfe' | hopline write --root one", 2, 1, id="memory"),
        pytest.param(
            "head -c 3000000 /dev/zero | tr '\\0' x | hopline write --root one", 2, 1, id="large memory"
        ),
        pytest.param("hopline write <&-", 2, 1, id="no input"),
    ],
)
def test_streams_and_arguments_as_shells_hand_them_over(
    tmp_path: Path, command: str, code: int, lines: int
) -> None:
    done = shell(command, tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, lines), done.stderr.decode()


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    assert (
        shell("hopline search ok $'a\\xff'", tmp_path).stderr
        == b"hopline: argument 3 isn't UTF-8: 'a\\xff'\n"
    )
    large = shell(
        "head -c 3000000 /dev/zero | tr '\\0' x | hopline write --root one", tmp_path
    ).stderr.decode()
    assert "HOPLINE_KAFKA__MAX_MESSAGE_BYTES" in large
    assert "hopline write-file" in large
