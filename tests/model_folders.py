"""Models in a folder: damaged ones, and the threads that a loaded one has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

#: What stands in a checkout in place of a large file that wasn't fetched.
LFS_POINTER: Final = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
Damage = Callable[[Path], None]


def removed(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def written(name: str, content: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).write_text(content, encoding="utf-8")

    return damage


def threads() -> set[int]:
    """Of this process, by the system's ids."""
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}
