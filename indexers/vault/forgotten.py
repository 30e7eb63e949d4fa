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

from indexers.domain.identity import normalise_path
from indexers.vault.durable import sync_folder
from indexers.vault.ignore import is_note
from indexers.vault.journal import FOLDER

FORGOTTEN: Final = f"{FOLDER}/forgotten"
_FORGOTTEN: Final = re.compile(r"forgotten(\.\d+)?")
#: Equal names kept side by side; one more replaces the last.
_COPIES: Final = 100
#: Paths of one listing.
SET_ASIDE_MAX: Final = 10_000


def set_aside(root: str, vault_path: str, path: str) -> str:
    """The new path below the vault, spelled like `path`. Raises FileNotFoundError, NotADirectoryError for no folder."""
    source = Path(root, vault_path)
    target = _free_place(Path(root), path)
    folder = Path(root)
    for segment in target.relative_to(root).parent.parts:
        folder = _real_folder(folder / segment)
    source.rename(target)
    sync_folder(folder)
    sync_folder(source.parent)
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


def set_aside_paths(root: str, most: int) -> list[str]:
    """Paths of notes that have copies set aside now, in order; no more than `most`. Links are not followed.

    The index may have forgotten them: it does so after a time, the vault doesn't.
    """
    top = Path(root, FOLDER)
    found: set[str] = set()
    for name in _folders(top):
        if not _FORGOTTEN.fullmatch(name):
            continue
        for path in _notes(top / name):
            if len(found) >= most:
                return sorted(found)
            found.add(path)
    return sorted(found)


def remove_copies(root: str, path: str) -> int:
    """Delete them for good; how many."""
    found = set_aside_copies(root, path)
    for place in found:
        place.unlink()
        sync_folder(place.parent)
    return len(found)


def remove(root: str, vault_path: str) -> None:
    """Raises FileNotFoundError."""
    source = Path(root, vault_path)
    source.unlink()
    sync_folder(source.parent)


def _free_place(root: Path, path: str) -> Path:
    for place in _places(root, path):
        if not os.path.lexists(place):
            break
    return place


def _places(root: Path, path: str) -> Iterator[Path]:
    """`.hopline/forgotten/<path>`, then `.hopline/forgotten.2/<path>` and so on: none is another note's."""
    for copy in range(1, _COPIES + 1):
        yield root / (FORGOTTEN if copy == 1 else f"{FORGOTTEN}.{copy}") / path


def _folders(folder: Path) -> list[str]:
    """Names of real ones, in order; nothing where the folder itself isn't a real one."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    with os.scandir(folder) as items:
        return sorted(item.name for item in items if item.is_dir(follow_symlinks=False))


def _notes(folder: Path) -> Iterator[str]:
    """Paths below the folder, as `set_aside` spells them: another spelling was put there by somebody else."""
    pending = [""]
    while pending:
        under = pending.pop()
        with os.scandir(folder / under) as items:
            found = sorted(items, key=lambda item: item.name)
        pending += [f"{under}{i.name}/" for i in found if i.is_dir(follow_symlinks=False)]
        paths = [f"{under}{item.name}" for item in found if not item.is_dir(follow_symlinks=False)]
        yield from (path for path in paths if _is_path(path))


def _is_path(path: str) -> bool:
    try:
        return is_note(path) and normalise_path(path) == path
    except ValueError:
        return False


def _real_folder(folder: Path) -> Path:
    try:
        folder.mkdir()
        sync_folder(folder.parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "no folder of the vault", str(folder)) from None
    return folder
