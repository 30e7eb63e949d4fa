"""The root of the command line: help, version, settings, and what errors become."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
#: Half a second of import time each; `--help` needs none of them.
HEAVY = (
    "numpy",
    "pydantic",
    "aiokafka",
    "faust",
    "opensearchpy",
    "fastapi",
    "onnxruntime",
    "structlog",
    "httpx2",
)


def hopline(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hopline", *arguments],
        env=dict(os.environ) | {"PYTHONPATH": str(REPOSITORY)} | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_names_every_command() -> None:
    done = hopline("--help")
    assert done.returncode == 0
    commands = (
        "up down status search read links backlinks entity labels verify rebuild watch rescan agent api dlq "
        "settings demo"
    )
    assert [name for name in commands.split() if f" {name} " not in done.stdout] == []


def test_help_loads_nothing_heavy() -> None:
    build = "import sys; from hopline.cli.main import build_app; build_app()"
    code = f"{build}; print({{*sys.modules}} & {{*{HEAVY}}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "set()\n"


def test_version_is_one_line() -> None:
    done = hopline("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("hopline ")


def test_wrong_usage_is_two() -> None:
    assert hopline("no-such-command").returncode == 2


@pytest.mark.parametrize("name", ["HOPLINE_OPENSEARCH__URLL", "HOPLINE_BOGUS"])
def test_misspelt_setting_is_two_and_one_line(name: str) -> None:
    done = hopline("status", **{name: "x"})
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_settings_lists_all_with_their_variables_and_masks_secrets() -> None:
    given = {"HOPLINE_OPENSEARCH__PASSWORD": "hunter2", "HOPLINE_API__PORT": "9999"}
    done = hopline("settings", "--json", **given)
    entries = {entry["env"]: entry for entry in json.loads(done.stdout)}
    assert entries["HOPLINE_API__PORT"] == {
        "env": "HOPLINE_API__PORT",
        "value": "9999",
        "default": "8470",
        "description": "Port of the query service.",
        "changed": True,
    }
    assert entries["HOPLINE_OPENSEARCH__PASSWORD"]["value"] == "********"
    assert "hunter2" not in done.stdout
    assert [name for name, entry in entries.items() if not entry["description"]] == []


def test_settings_as_environment_reads_back() -> None:
    done = hopline("settings", "--env", HOPLINE_EMBED__BATCH_RECORDS="7")
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    assert "HOPLINE_EMBED__BATCH_RECORDS=7" in lines
    again = hopline("settings", "--env", **dict(line.split("=", 1) for line in lines))
    assert again.stdout == done.stdout


@pytest.mark.parametrize(
    ("arguments", "service"),
    [
        (("rescan",), "Kafka"),
        (("rebuild", "--yes"), "Kafka"),
        (("write", "hello", "--root", "notes"), "Kafka"),
        (("dlq", "list"), "Kafka"),
        (("verify",), "OpenSearch"),
    ],
)
def test_command_without_its_engine_says_in_one_line_what_to_do(
    tmp_path: Path, arguments: tuple[str, ...], service: str
) -> None:
    vaults = json.dumps([{"name": "notes", "path": str(tmp_path)}])
    nothing = {
        "HOPLINE_LOCAL__DATA_DIR": str(tmp_path / "data"),
        "HOPLINE_LOCAL__KAFKA_PORT": "9",
        "HOPLINE_LOCAL__OPENSEARCH_PORT": "9",
        "HOPLINE_VAULTS": vaults,
    }
    address = {"Kafka": "127.0.0.1:9", "OpenSearch": "http://127.0.0.1:9"}[service]
    done = hopline(*arguments, **nothing)
    said = f"hopline: {service} doesn't answer at {address}: is Hopline running? `hopline status`, `hopline up`\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", said)
    theirs = nothing | {"HOPLINE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9", "HOPLINE_OPENSEARCH__URL": address}
    if service == "Kafka":
        del theirs["HOPLINE_OPENSEARCH__URL"]
    done = hopline(*arguments, **theirs)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
