"""Bytes and names that a power cut leaves where they are: files replaced at once, folders on the disk. Blocking.

A process that is killed while it writes leaves its temporary file, with all of the text: `remove_leftovers`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from pathlib import Path
from typing import Final

_TEMPORARY: Final = re.compile(r"\.hopline-[0-9a-f]{16}\.tmp")


def replace(target: Path, content: bytes) -> None:
    """Temporary file beside it, fsync, rename. Permissions of what stood there are kept."""
    temporary = target.parent / f".hopline-{secrets.token_hex(8)}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """What was made, renamed or removed in it is on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_temporary(name: str) -> bool:
    """As `replace` names them, and nobody else."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftovers(folder: Path, *, older_seconds: float) -> int:
    """Delete the temporary files in this folder, none below it, that are older; how many. No real folder: none."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return 0  # O_DIRECTORY says so of a symlink too
    try:
        removed = sum(
            _remove_old(name, handle, time.time() - older_seconds)
            for name in os.listdir(handle)  # noqa: PTH208 - a descriptor
            if is_temporary(name)
        )
        if removed:
            os.fsync(handle)
    finally:
        os.close(handle)
    return removed


def _remove_old(name: str, folder: int, before: float) -> bool:
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode) or info.st_mtime >= before:
            return False
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False  # it was being written, and is the note now
    return True
