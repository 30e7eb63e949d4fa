"""Where the command `hopline` begins, before anything slow is loaded."""

from __future__ import annotations

import os
import signal
from typing import NoReturn


def main() -> None:
    if os.getpid() == 1:
        # The first process of a container: the kernel gives it no signal that it has no handler for. Without this one,
        # a container that is stopped while it starts lives on until it is killed. Agents and services set their own.
        signal.signal(signal.SIGTERM, _end)
    from hopline.cli.main import main as run

    run()


def _end(number: int, _frame: object) -> NoReturn:
    """As the signal ends any other process: at once."""
    os._exit(128 + number)
