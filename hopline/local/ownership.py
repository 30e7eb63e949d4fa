"""Folders that root gives to the user who runs OpenSearch, without ever trusting what that user put there.

A link planted in a folder of that user's must not make root write to, or give away, something else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hopline.local.processes import OsUser
from indexers.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name in an open folder; `path` is relative to where the walk began."""

    folder: int
    name: str
    path: str


def keep_own(folder: Path) -> None:
    """Ours again, whoever had it, and open to read: from here on no other user changes a name in it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchown(handle, os.geteuid(), os.getegid())
        os.fchmod(handle, 0o755)
    finally:
        os.close(handle)


def give(folder: Path, user: OsUser) -> None:
    """The folder and what was put there for the user. What is the user's already is not walked."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as exc:
        msg = f"{folder} is no folder ({exc.strerror}): remove it, `hopline up` makes it anew"
        raise ConfigurationError(msg) from exc
    try:
        if os.fstat(handle).st_uid == user.uid:
            return
        for entry in to_give(handle, user):
            os.chown(entry.name, user.uid, user.gid, dir_fd=entry.folder, follow_symlinks=False)
        # Last of all: until then the folder isn't the user's, and an interrupted walk is begun anew.
        os.fchown(handle, user.uid, user.gid)
    finally:
        os.close(handle)


def to_give(folder: int, user: OsUser) -> Iterator[Entry]:
    """What lies in an open folder and isn't the user's, but for links: their targets belong elsewhere."""
    for root, folders, files, handle in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
            is_link = stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1)
            if found.st_uid != user.uid and not is_link:
                path = os.path.normpath(f"{root}/{name}")
                yield Entry(folder=handle, name=name, path=path)
