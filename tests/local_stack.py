"""The command line on a data folder and ports of its own, and what it says of its processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from hopline.local.ports import is_free

REPOSITORY = Path(__file__).resolve().parents[1]
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
