"""Makes what is missing and says how long each took; exit 1 where one could not be made."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Sequence

from tools.chart_tools.errors import ChartToolError
from tools.chart_tools.folder import ensure, tools_folder
from tools.chart_tools.making import ITEMS, Item


def main() -> int:
    # A group of its own, so that whoever started it can end it with its compilers.
    if os.getpgrp() != os.getpid():
        os.setpgrp()
    return 1 if make_all(ITEMS) else 0


def make_all(items: Sequence[Item]) -> list[Item]:
    """Gives those that failed."""
    failed = []
    for item in items:
        began, spent = time.monotonic(), cpu_seconds()
        try:
            ensure(item, tools_folder())
        except (ChartToolError, OSError) as exc:
            failed.append(item)
            print(f"{item.name} {item.version}: {exc}", flush=True)
        else:
            took, cpu = time.monotonic() - began, cpu_seconds() - spent
            print(f"{item.name} {item.version}: there after {took:.1f} s, {cpu:.1f} s of CPU", flush=True)
    return failed


def cpu_seconds() -> float:
    """Of the processes that this one has started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
