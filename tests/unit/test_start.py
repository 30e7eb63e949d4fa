"""The command as a container runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: SIGTERM while the command line is being loaded, which takes its time.
ASKED_TO_STOP_EARLY = """
import os, signal, sys, types
number, first = os.getpid(), sys.argv[1] == "first"
os.getpid = lambda: 1 if first else number

class Loading(types.ModuleType):
    def __getattr__(self, name):
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and first:
            sys.exit("the kernel would not deliver it")
        os.kill(number, signal.SIGTERM)
        raise AttributeError(name)

sys.modules["hopline.cli.main"] = Loading("hopline.cli.main")
from hopline.start import main
main()
"""


@pytest.mark.parametrize(("process", "code"), [("first", 143), ("any other", -15)])
def test_what_is_stopped_while_it_starts_stops(process: str, code: int) -> None:
    """As process 1 a signal without a handler is lost, and the container lives on until it is killed."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED_TO_STOP_EARLY, process], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, "")
