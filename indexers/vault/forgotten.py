"""Notes taken out of a local vault: set aside under `.hopline/forgotten/`, or deleted. Blocking.

`root` is the resolved folder of the vault, `vault_path` a name on disk below it. Folders on the way to the forgotten
ones are real ones: a symlink there would lead the text out of the vault.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from indexers.vault.journal import FOLDER

FORGOTTEN: Final = f"{FOLDER}/forgotten"
_FORGOTTEN: Final = re.compile(r"forgotten(\.\d+)?")
#: Equal names kept side by side; one more replaces the last.
_COPIES: Final = 100


def set_aside(root: str, vault_path: str, path: str) -> str:
    """The new path below the vault, spelled like `path`. Raises FileNotFoundError, NotADirectoryError for no folder."""
    source = Path(root, vault_path)
    target = _free_place(Path(root), path)
    folder = Path(root)
    for segment in target.relative_to(root).parent.parts:
        folder = _real_folder(folder / segment)
    source.rename(target)
    _sync(folder)
    _sync(source.parent)
    return str(target.relative_to(root))


def set_aside_copies(root: str, path: str) -> list[Path]:
    """The note's copies that are set aside now; a person may have taken back any of them, the first too.

    `root` is resolved: what a symlink leads to is none of ours.
    """
    top = Path(root, FOLDER)
    names = os.listdir(top) if top.is_dir() else []  # noqa: PTH208 - names alone
    places = [top / name / path for name in sorted(names) if _FORGOTTEN.fullmatch(name)]
    found = [place for place in places if os.path.lexists(place)]
    return [place for place in found if os.path.realpath(place.parent) == str(place.parent)]


def remove_copies(root: str, path: str) -> int:
    """Delete them for good; how many."""
    found = set_aside_copies(root, path)
    for place in found:
        place.unlink()
        _sync(place.parent)
    return len(found)


def remove(root: str, vault_path: str) -> None:
    """Raises FileNotFoundError."""
    source = Path(root, vault_path)
    source.unlink()
    _sync(source.parent)


def _free_place(root: Path, path: str) -> Path:
    for place in _places(root, path):
        if not os.path.lexists(place):
            break
    return place


def _places(root: Path, path: str) -> Iterator[Path]:
    """`.hopline/forgotten/<path>`, then `.hopline/forgotten.2/<path>` and so on: none is another note's."""
    for copy in range(1, _COPIES + 1):
        yield root / (FORGOTTEN if copy == 1 else f"{FORGOTTEN}.{copy}") / path


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
