"""A note opened along its path, folder by folder, without a link followed: one look where a search takes a dozen."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

#: Windows has no descriptors of folders.
_POSSIBLE: Final = {os.open, os.stat} <= os.supports_dir_fd
_FOLDER: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0)
#: O_NOFOLLOW: a link put there meanwhile is not followed. O_NONBLOCK: a pipe doesn't hang us.
_FILE: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_directly(root: Path, path: str) -> BinaryIO | None:
    """The regular file that stands at `path` (composed, of a note) below the vault, links of the root aside.

    None where anything else stands in the way (a link, another spelling, no permission, no vault): who wants to
    know why, looks closer.
    """
    if not _POSSIBLE:
        return None
    *folders, name = path.split("/")
    try:
        folder = os.open(root, _FOLDER)
        try:
            for segment in folders:
                below = os.open(segment, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = below
            return _regular_file(name, folder)
        finally:
            os.close(folder)
    except OSError:
        return None


def _regular_file(name: str, folder: int) -> BinaryIO | None:
    """Looked at before it is opened, because to open a device does something; and after, as it may have changed."""
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return None
    # With a size given, it isn't asked whether it is a terminal.
    file = os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb", io.DEFAULT_BUFFER_SIZE)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    return None
