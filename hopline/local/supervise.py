"""`python -m hopline.local.supervise`: the supervisor in the background. Started by `hopline up` only."""

from __future__ import annotations

import asyncio
import sys

from hopline.local.folders import StackFolders
from hopline.local.state import read_plan
from hopline.local.supervisor import Supervisor
from hopline.settings import load_settings
from indexers.errors import HoplineError
from streams.logs import configure_logging


def main() -> None:
    try:
        settings = load_settings()
        configure_logging(settings.log_level)
        plan = read_plan(StackFolders(settings.local.data_dir).plan)
    except HoplineError as exc:
        sys.exit(str(exc))
    sys.exit(asyncio.run(Supervisor(settings, plan, say=lambda _: None).run()))


if __name__ == "__main__":
    main()
