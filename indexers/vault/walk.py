"""The walk of a local vault: which files are there, which names are left out and why.

Symlinks: a linked folder is never walked (inside the vault its files have a path of their own, so a loop is
walked once; outside it they are no part of the vault). A linked file is a document where its target is a
file of the vault that no dotfolder hides.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from indexers.ports import FileEntry, ProblemReason, VaultListing, VaultProblem
from indexers.vault.durable import is_temporary
from indexers.vault.ignore import is_note_name, is_walked_folder

_CONTROL = re.compile(r"[\x00-\x1f]")


def nfc(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def spelling_order(path: str, vault_path: str) -> tuple[bool, str]:
    """Which of several names with one identity wins: the composed one, else the first in code-point order."""
    return (vault_path != path, vault_path)


def is_inside(root: str, real: str) -> bool:
    """True where a resolved path lies in the vault and below no dotfolder."""
    if not real.startswith(root.rstrip("/") + "/"):
        return False
    return all(is_walked_folder(part) for part in real[len(root.rstrip("/")) + 1 :].split("/")[:-1])


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


@dataclass(slots=True)
class Walk:
    """Collects one listing. `root` is a resolved folder; paths are relative to it."""

    root: str
    _entries: dict[str, FileEntry] = field(default_factory=dict)
    _problems: list[VaultProblem] = field(default_factory=list)

    #: Folders with temporary files of ours, which may be of a write that goes on just now.
    _leftovers: set[str] = field(default_factory=set)

    def listing(self) -> VaultListing:
        entries = sorted(self._entries.values(), key=lambda e: e.path)
        return VaultListing(
            entries=tuple(entries),
            problems=tuple(sorted(self._problems, key=lambda p: (p.path, p.reason))),
            leftovers=tuple(sorted(self._leftovers)),
        )

    def folders(self, vault_paths: Iterable[str]) -> None:
        """Walk these folders and all below them."""
        pending = list(vault_paths)
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(os.path.join(self.root, folder)) as items:  # noqa: PTH118 - folder may be ""
                    found = list(items)
            except (FileNotFoundError, NotADirectoryError):
                continue  # gone since it was listed: the next look tells
            except OSError:
                self._problem(folder, "unreadable_folder")
                continue
            pending.extend(join(folder, item.name) for item in found if self._item(folder, item))

    def _item(self, folder: str, item: os.DirEntry[str]) -> bool:
        """Take note of a file; True for a folder to walk."""
        is_folder = item.is_dir(follow_symlinks=False)
        if is_temporary(item.name) and not is_folder:
            self._leftovers.add(nfc(folder))
            return False
        if not (
            is_walked_folder(item.name) if is_folder else is_note_name(nfc(item.name)) or item.is_symlink()
        ):
            return False
        vault_path = join(folder, item.name)
        try:
            vault_path.encode()
        except UnicodeEncodeError:
            self._problem(vault_path, "not_utf8")
            return False
        if _CONTROL.search(item.name):
            self._problem(vault_path, "control_characters")
            return False
        if not is_folder:
            self.file(vault_path)
        return is_folder

    def file(self, vault_path: str) -> None:
        """Take note of what stands at this path, if it has a note's name."""
        path = nfc(vault_path)
        found = look(self.root, path, vault_path)
        if found is None:
            return
        if isinstance(found, VaultProblem):
            self._problems.append(found)
            return
        rival = self._entries.get(path)
        if rival is not None:
            self._problem(path, "same_name")
            if spelling_order(path, rival.vault_path) < spelling_order(path, vault_path):
                return
        self._entries[path] = found

    def _problem(self, vault_path: str, reason: ProblemReason) -> None:
        printable = vault_path.encode("utf-8", "backslashreplace").decode()
        self._problems.append(VaultProblem(path=nfc(printable), reason=reason))


def look(root: str, path: str, vault_path: str) -> FileEntry | VaultProblem | None:
    """The note at `vault_path`, why it can't be one, or None where no note's name stands there."""
    full = f"{root}/{vault_path}"
    is_note = is_note_name(path.rsplit("/", 1)[-1])
    is_link = False
    try:
        own = os.lstat(full)
        is_link = stat.S_ISLNK(own.st_mode)
        info = os.stat(full) if is_link else own  # noqa: PTH116 - the hot loop of every scan
    except OSError as exc:
        gone = isinstance(exc, FileNotFoundError | NotADirectoryError)
        if not is_note or (gone and not is_link):
            return None
        return VaultProblem(path=path, reason="broken_link" if is_link else "unreadable_file")
    is_folder = stat.S_ISDIR(info.st_mode)
    if is_link and (is_note or is_folder) and not is_inside(root, os.path.realpath(full)):
        # A link to the root itself leads nowhere new.
        return None if os.path.realpath(full) == root else VaultProblem(path=path, reason="outside_root")
    if is_folder or not is_note:
        return None
    if not stat.S_ISREG(info.st_mode):
        return VaultProblem(path=path, reason="not_a_file")
    return FileEntry(
        path=path,
        vault_path=vault_path,
        size=info.st_size,
        modified_ns=info.st_mtime_ns,
        inode=own.st_ino,
    )
