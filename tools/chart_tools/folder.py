"""Where the tools lie, and who makes a missing one: one process at a time, the others wait for it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.chart_tools.errors import ChartToolError
from tools.chart_tools.making import GO_CACHES, ITEMS, Item

__all__ = ["ChartToolError", "ensure", "tool", "tools_folder"]

#: A cold build is about six minutes of one core; on a busy machine, given way to others, it is twice that.
PATIENCE_SECONDS = 1_200.0
_POLL_SECONDS = 0.5


def tools_folder() -> Path:
    """Beside the engines' cache, outside of any clone: made once a machine."""
    if os.geteuid() == 0:
        return Path("/var/cache/hopline/chart-tools")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "hopline" / "chart-tools"


def tool(name: str, *, patience_seconds: float = PATIENCE_SECONDS, folder: Path | None = None) -> Path:
    """The path of a tool (`helm`, `promtool` …) or of a folder of schemas (`kubernetes-1.37`).

    Made here where it is missing. Raises ChartToolError where that fails, or where another process that is at it has
    not come to an end within `patience_seconds`; KeyError for a name that is none.
    """
    item = next((item for item in ITEMS if name in item.files), None)
    if item is None:
        raise KeyError(name)
    return ensure(item, folder or tools_folder(), patience_seconds=patience_seconds) / item.files[name]


def ensure(item: Item, folder: Path, *, patience_seconds: float = PATIENCE_SECONDS) -> Path:
    """The item's folder. It appears whole, under a name that holds the version: to be there is to be done."""
    home = _home(folder, item)
    if home.is_dir():
        return home
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / ".lock", home, patience_seconds) as alone:
        if alone:
            _make(item, home)
            if all(_home(folder, each).is_dir() for each in ITEMS):
                shutil.rmtree(folder / GO_CACHES, ignore_errors=True)
    return home


def _home(folder: Path, item: Item) -> Path:
    return folder / f"{item.name}-{item.version}"


def _make(item: Item, home: Path) -> None:
    """With the lock held, so what lies there half made is of a process that was killed."""
    for left in home.parent.glob(f".{item.name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    making = Path(tempfile.mkdtemp(prefix=f".{item.name}-", dir=home.parent))
    try:
        item.make(making)
        missing = [name for name, path in item.files.items() if not (making / path).exists()]
        if missing:
            raise ChartToolError(f"{item.name} {item.version} was made, but {', '.join(missing)} isn't there")
        making.chmod(0o755)
        making.rename(home)
    finally:
        shutil.rmtree(making, ignore_errors=True)


@contextmanager
def _alone(lock: Path, home: Path, patience_seconds: float) -> Iterator[bool]:
    """True with the lock held; False as soon as another process has made `home`."""
    deadline = time.monotonic() + patience_seconds
    with lock.open("a") as stream:
        while not home.is_dir():
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ChartToolError(
                        f"{home.name} was not made within {patience_seconds:.0f} s by the process that holds {lock};"
                        " in CI its words are in build/chart-tools.log"
                    ) from None
                time.sleep(_POLL_SECONDS)
            else:
                yield not home.is_dir()
                return
        yield False
