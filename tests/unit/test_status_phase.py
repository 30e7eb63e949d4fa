"""The word for a process in `hopline status`."""

from __future__ import annotations

import os

import pytest

from hopline.local.processes import ProcessMark
from hopline.local.state import ProcessPhase, ProcessState
from hopline.local.status import phase_of

OWN = ProcessMark.of(os.getpid())


@pytest.mark.parametrize(
    ("phase", "mark", "expected"),
    [
        pytest.param("waiting", None, "waiting", id="its turn hasn't come"),
        pytest.param("starting", OWN, "starting", id="starts"),
        pytest.param("ready", OWN, "ready", id="runs"),
        pytest.param("restarting", None, "restarting", id="between two lives"),
        pytest.param("crash loop", None, "crash loop", id="between many"),
        pytest.param("ready", ProcessMark(pid=OWN.pid, started=OWN.started - 9), "gone", id="just ended"),
    ],
)
def test_only_a_process_that_was_there_can_be_gone(
    phase: ProcessPhase, mark: ProcessMark | None, expected: str
) -> None:
    own = ProcessState(name="opensearch", phase=phase, log="", grace_seconds=1.0)
    if mark is not None:
        own = ProcessState(
            name="opensearch", phase=phase, log="", grace_seconds=1.0, pid=mark.pid, started=mark.started
        )
    assert phase_of(own) == expected
