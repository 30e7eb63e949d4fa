"""`hopline status` says what an agent's batch waits for."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from hopline.cli import stack
from hopline.local.status import ProcessReport, StackReport, Waits, waits_of
from streams.health import Liveness


def test_what_an_agent_waits_for_is_read_from_its_liveness() -> None:
    now = 0.0
    liveness = Liveness(limit_seconds=60, clock=lambda: now)
    assert waits_of(liveness.verdict().details) is None
    now = 75.0
    liveness.tried("vault")
    liveness.tried("opensearch")
    assert waits_of(liveness.verdict().details) == Waits(dependencies=("opensearch", "vault"), seconds=75.0)
    assert waits_of({}) is None


def test_a_held_batch_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Waits(dependencies=("vault",), seconds=75.4)
    agent = ProcessReport(name="ingest", phase="running", ready=True, url="http://x", pid=7, waits=waits)
    found = StackReport(running=True, phase="running", message="", processes=[agent])
    stack._show(found)
    assert "HELD: waits for vault; nothing finished for 75 s" in capsys.readouterr().out
    assert found.as_json()["processes"][0]["waits"] == asdict(waits)
