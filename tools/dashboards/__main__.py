"""Writes the dashboards' JSON from the code, or says which differs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.dashboards.engines import ENGINES
from tools.dashboards.overview import OVERVIEW
from tools.dashboards.panels import Dashboard
from tools.dashboards.pipeline import PIPELINE
from tools.dashboards.search import SEARCH
from tools.dashboards.tenants import TENANTS

FOLDER: Final = Path(__file__).resolve().parents[2] / "helm" / "hopline" / "files" / "dashboards"
DASHBOARDS: Final[Sequence[Dashboard]] = (OVERVIEW, PIPELINE, SEARCH, TENANTS, ENGINES)


def stale() -> list[str]:
    """Files that differ from the code, are missing, or that no code writes."""
    wanted = {f"{board.name}.json": board.text() for board in DASHBOARDS}
    found = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def main() -> int:
    if "--check" in sys.argv:
        for name in stale():
            print(f"{FOLDER / name} differs from the code: run python -m tools.dashboards", file=sys.stderr)
        return 1 if stale() else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for board in DASHBOARDS:
        (FOLDER / f"{board.name}.json").write_text(board.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
