"""Notes taken out of a local vault: set aside under `.hopline/forgotten/`, or deleted. Blocking.

`root` is the resolved folder of the vault, `vault_path` a name on disk below it. Folders on the way to the forgotten
ones are real ones: a symlink there would lead the text out of the vault.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from indexers.vault.journal import FOLDER

FORGOTTEN: Final = f"{FOLDER}/forgotten"
#: Equal names kept side by side; one more replaces the last.
_COPIES: Final = 100
_NAME_MAX: Final = 255


def set_aside(root: str, vault_path: str) -> str:
    """The new path below the vault. Raises FileNotFoundError, and NotADirectoryError where a folder is none."""
    source = Path(root, vault_path)
    *folders, name = vault_path.split("/")
    folder = Path(root)
    for segment in (*FORGOTTEN.split("/"), *folders):
        folder = _real_folder(folder / segment)
    target = folder / _free_name(folder, name)
    source.rename(target)
    _sync(folder)
    _sync(source.parent)
    return str(target.relative_to(root))


def remove(root: str, vault_path: str) -> None:
    """Raises FileNotFoundError."""
    source = Path(root, vault_path)
    source.unlink()
    _sync(source.parent)


def _free_name(folder: Path, name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    free = name
    for copy in range(2, _COPIES):
        if not os.path.lexists(folder / free):
            break
        end = f" ({copy}){dot}{suffix}"
        room = _NAME_MAX - len(end.encode())
        free = stem.encode()[:room].decode("utf-8", "ignore") + end
    return free


def _real_folder(folder: Path) -> Path:
    try:
        folder.mkdir()
        _sync(folder.parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "no folder of the vault", str(folder)) from None
    return folder


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
