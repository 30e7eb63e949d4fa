"""A vault in a folder of this machine."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from indexers.domain.identity import normalise_path
from indexers.errors import VaultUnavailable
from indexers.ports import FileEntry, VaultListing, VaultProblem
from indexers.vault.direct import open_directly
from indexers.vault.durable import remove_leftovers, replace, sync_folder
from indexers.vault.forgotten import (
    SET_ASIDE_MAX,
    remove,
    remove_copies,
    set_aside,
    set_aside_copies,
    set_aside_paths,
)
from indexers.vault.ignore import is_note
from indexers.vault.walk import Walk, is_inside, join, look, nfc, spelling_order

#: Longest single name of the usual file systems, bytes.
NAME_MAX = 255
#: ASCII characters that some other code point composes to (KELVIN SIGN, GREEK QUESTION MARK, GREEK VARIA).
_COMPOSED_TO_ASCII = frozenset("K;`")


class LocalVaultFiles:
    """Adapter of `VaultFiles`. It holds nothing but the root: one that comes and goes is seen at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def root_identity(self) -> str:
        info = os.stat(self._resolved_root())  # noqa: PTH116 - str all the way
        return f"{info.st_dev}:{info.st_ino}"

    def entries(self) -> Iterator[FileEntry]:
        yield from self.listing().entries

    def listing(self, under: str = "") -> VaultListing:
        root = self._resolved_root()
        walk = Walk(root)
        if not under:
            walk.folders([""])
            self._resolved_root()  # a root lost during the walk must not look like an empty one
            return walk.listing()
        for vault_path in self._spellings(root, normalise_path(under)):
            if stat.S_ISDIR(os.lstat(f"{root}/{vault_path}").st_mode):
                walk.folders([vault_path])
            else:
                walk.file(vault_path)
        return walk.listing()

    def entry(self, path: str) -> FileEntry:
        root = self._resolved_root()
        wanted = normalise_path(path)
        if not is_note(wanted):
            raise FileNotFoundError(errno.ENOENT, "no such note in the vault", wanted)
        found = self._find(root, wanted)
        if isinstance(found, FileEntry):
            return found
        if isinstance(found, VaultProblem) and found.hides_content:
            raise PermissionError(errno.EACCES, "the note can't be read", wanted)
        if not _stays_inside(root, wanted):
            msg = f"{wanted!r} leads out of the vault through a symlink"
            raise ValueError(msg)
        raise FileNotFoundError(errno.ENOENT, "no such note in the vault", wanted)

    def open(self, path: str) -> BinaryIO:
        wanted = normalise_path(path)
        file = open_directly(self.root, wanted) if is_note(wanted) else None
        if file is not None:
            return file
        entry = self.entry(wanted)
        file = os.fdopen(self._open(entry), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise FileNotFoundError(errno.ENOENT, "no such note in the vault", entry.path)
        return file

    def read(self, path: str, *, start: int = 0, max_bytes: int | None = None) -> bytes:
        if start < 0 or (max_bytes is not None and max_bytes < 0):
            msg = f"start={start}, max_bytes={max_bytes}: give none below 0"
            raise ValueError(msg)
        with self.open(path) as file:
            file.seek(start)
            return file.read(-1 if max_bytes is None else max_bytes)

    def _open(self, entry: FileEntry) -> int:
        """O_NOFOLLOW: a link put there since the look is not followed. O_NONBLOCK: a pipe doesn't hang us."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        name = f"{self.root}/{entry.vault_path}"
        try:
            return os.open(name, flags)
        except OSError as exc:
            if exc.errno != errno.ELOOP:
                raise
        real = os.path.realpath(name)
        if not is_inside(os.path.realpath(self.root), real):
            msg = f"{entry.path!r} leads out of the vault through a symlink"
            raise ValueError(msg)
        return os.open(real, flags)

    def write_atomic(self, path: str, content: bytes) -> FileEntry:
        root = self._resolved_root()
        wanted = _writable(path)
        found = self._find(root, wanted)
        folder, name = self._place(root, wanted, found)
        target = os.path.realpath(os.path.join(folder, name))  # noqa: PTH118 - str all the way
        if not _stays_inside(root, os.path.relpath(target, root)):
            msg = f"{wanted!r} leads out of the vault through a symlink"
            raise ValueError(msg)
        _refuse_what_is_no_file(wanted, target, folder)
        replace(Path(target), content)
        return self.entry(wanted)

    def set_aside(self, path: str) -> str:
        root, entry = self._resolved_root(), self.entry(path)
        return set_aside(root, entry.vault_path, entry.path)

    def set_aside_copies(self, path: str) -> int:
        return len(set_aside_copies(self._resolved_root(), normalise_path(path)))

    def set_aside_paths(self, most: int = SET_ASIDE_MAX) -> list[str]:
        return set_aside_paths(self._resolved_root(), most)

    def remove_copies(self, path: str) -> int:
        return remove_copies(self._resolved_root(), normalise_path(path))

    def remove(self, path: str) -> None:
        root, entry = self._resolved_root(), self.entry(path)
        remove(root, entry.vault_path)

    def remove_leftovers(self, folder: str, *, older_seconds: float) -> int:
        root = self._resolved_root()
        places = self._spellings(root, normalise_path(folder)) if folder else [""]
        return sum(remove_leftovers(Path(root, place), older_seconds=older_seconds) for place in places)

    def _resolved_root(self) -> str:
        root = os.path.realpath(self.root)
        try:
            with os.scandir(root):
                return root
        except NotADirectoryError as exc:
            msg = f"the vault {self.root} is no folder"
            raise VaultUnavailable(msg) from exc
        except OSError as exc:
            msg = f"the vault {self.root} can't be read: {exc.strerror}"
            raise VaultUnavailable(msg) from exc

    def _find(self, root: str, path: str) -> FileEntry | VaultProblem | None:
        parent = path.rpartition("/")[0]
        composed = join(root, parent) if parent else root
        if os.path.realpath(composed) == composed:
            # Wins over every other spelling, so nothing else needs to be looked for.
            found = None if _too_long(path) else look(root, path, path)
            if found is not None:
                return found
        for vault_path in self._spellings(root, path):
            found = look(root, path, vault_path)
            if found is not None:
                return found
        return None

    def _spellings(self, root: str, path: str) -> list[str]:
        """Names on disk with this identity, the winning one first. Symlinked folders are not entered."""
        found = [""]
        for segment in path.split("/"):
            found = [join(folder, name) for folder in found for name in _names(join(root, folder), segment)]
        return sorted(found, key=lambda vault_path: spelling_order(path, vault_path))

    def _place(self, root: str, path: str, found: FileEntry | VaultProblem | None) -> tuple[str, str]:
        """Folder and name to write to: what is on disk keeps its spelling, what is new is composed."""
        if isinstance(found, FileEntry):
            folder, _, name = found.vault_path.rpartition("/")
            return join(root, folder) if folder else root, name
        *parents, name = path.split("/")
        folder = root
        for parent in parents:
            known = [n for n in _names(folder, parent) if n == parent] or _names(folder, parent)
            below = join(folder, min(known, default=parent))
            if not known:
                Path(below).mkdir(exist_ok=True)
                sync_folder(Path(folder))
            elif not stat.S_ISDIR(os.lstat(below).st_mode):
                msg = f"{path!r} can't be written: {parent!r} is no folder of the vault (a file or a symlink)"
                raise ValueError(msg)
            folder = below
        if os.path.isdir(join(folder, name)):  # noqa: PTH112 - str all the way
            msg = f"{path!r} can't be written: a folder has this name"
            raise ValueError(msg)
        return folder, name


def _writable(path: str) -> str:
    wanted = normalise_path(path)
    if not is_note(wanted):
        msg = f"{wanted!r} is no note: it must end in .md or .markdown; dotfiles and dotfolders are ignored"
        raise ValueError(msg)
    if _too_long(wanted):
        msg = f"a name in {wanted!r} is longer than {NAME_MAX} bytes, which no file system holds"
        raise ValueError(msg)
    return wanted


def _too_long(path: str) -> bool:
    return any(len(segment.encode()) > NAME_MAX for segment in path.split("/"))


def _names(folder: str, segment: str) -> list[str]:
    """Names in a real folder whose composed form is `segment`. Lists it where several are possible."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        if segment.isascii() and not _COMPOSED_TO_ASCII.intersection(segment):
            os.lstat(join(folder, segment))
            return [segment]
        return sorted(name for name in os.listdir(folder) if nfc(name) == segment)  # noqa: PTH208 - str all the way
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG and _too_long(segment):
            return []
        raise


def _stays_inside(root: str, path: str) -> bool:
    return is_inside(root, os.path.realpath(os.path.join(root, path)))  # noqa: PTH118 - str all the way


def _refuse_what_is_no_file(path: str, target: str, folder: str) -> None:
    """A pipe, a socket, a device or a loop of symlinks is somebody's: a rename would take it away."""
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        parent = os.path.dirname(target)  # noqa: PTH120 - str all the way
        if parent != folder and not os.path.lexists(parent):
            msg = f"{path!r} can't be written: it is a symlink into a folder that is missing"
            raise ValueError(msg) from None
        return
    if not stat.S_ISREG(mode):
        msg = f"{path!r} can't be written: what stands there is no file"
        raise ValueError(msg)
