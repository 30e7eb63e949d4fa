"""The vault of each namespace: a root of the settings, or a folder of the memory tree.

`<tree>/<tenant>/personal/<agent>`, `<tree>/<tenant>/shared/<agent>`, `<tree>/<tenant>/team/<team>/<agent>`. Labels
hold no slash and begin with no dot, so each namespace has one folder and no folder leads out of the tree. There is
nothing to keep for a namespace: thousands of them cost what is on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId
from indexers.errors import VaultUnavailable
from indexers.ports import FileEntry, VaultFiles
from indexers.settings import VaultRoot
from indexers.vault.durable import sync_folder
from indexers.vault.forgotten import SET_ASIDE_MAX
from indexers.vault.local import NAME_MAX as FILE_NAME_MAX
from indexers.vault.local import LocalVaultFiles
from indexers.vault.roots import files_of

#: Longest name of a root.
_NAME_MAX: Final = 128


class VaultTree:
    """Lookup by namespace; a root of the settings goes before the tree. Nothing is made but by `make`."""

    def __init__(self, roots: Sequence[VaultRoot], folder: Path | None = None) -> None:
        """ConfigurationError where two roots claim one namespace."""
        self.roots = tuple(roots)
        self.folder = folder
        self._files: dict[Namespace, VaultFiles] = dict(files_of(roots))
        self._by_namespace = {root.namespace: root for root in roots}

    def get(self, namespace: Namespace) -> VaultFiles | None:
        """None: no vault takes it. Of the tree also where nothing was written yet."""
        found = self._files.get(namespace)
        if found is not None or self.folder is None or not _fits(namespace):
            return found
        return TreeVaultFiles(self.folder, place_of(namespace))

    def root_of(self, namespace: Namespace) -> VaultRoot | None:
        found = self._by_namespace.get(namespace)
        if found is not None or self.folder is None or not _fits(namespace):
            return found
        return root_of(self.folder, namespace)

    def make(self, namespace: Namespace) -> None:
        """The folder of a namespace of the tree, for what is written past its files. Raises OSError."""
        if self.folder is not None and namespace not in self._by_namespace:
            make_folder(self.folder, place_of(namespace))

    def found(self) -> list[VaultRoot]:
        """Namespaces of the tree that have a folder and no root of their own, in order of name. Blocking.

        Raises VaultUnavailable where the tree is there but can't be read; one that was never made is empty.
        """
        if self.folder is None:
            return []
        roots = [root_of(self.folder, ns) for ns in _namespaces(self.folder) if ns not in self._by_namespace]
        return sorted(roots, key=lambda root: root.name)

    @property
    def all_roots(self) -> tuple[VaultRoot, ...]:
        """Of the settings and of the tree, as it is now. Blocking."""
        return (*self.roots, *self.found())


class TreeVaultFiles(LocalVaultFiles):
    """One namespace of the tree. Its folder comes with its first file: before that it is a vault without files."""

    def __init__(self, tree: Path, place: Sequence[str]) -> None:
        super().__init__(tree.joinpath(*place))
        self._tree = tree
        self._place_in_tree = tuple(place)

    def root_identity(self) -> str:
        try:
            return super().root_identity()
        except FileNotFoundError:
            # The tree itself comes with the first memory of all.
            info = (self._tree if self._tree.exists() else self._tree.parent).stat()
            return f"{info.st_dev}:{info.st_ino}:none"

    def entries(self) -> Iterator[FileEntry]:
        with contextlib.suppress(FileNotFoundError):
            yield from super().entries()

    def open(self, path: str) -> BinaryIO:
        self._resolved_root()
        return super().open(path)

    def set_aside_copies(self, path: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            return super().set_aside_copies(path)
        return 0

    def set_aside_paths(self, most: int = SET_ASIDE_MAX) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return super().set_aside_paths(most)
        return []

    def remove_leftovers(self, folder: str, *, older_seconds: float) -> int:
        with contextlib.suppress(FileNotFoundError):
            return super().remove_leftovers(folder, older_seconds=older_seconds)
        return 0

    def remove_copies(self, path: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            return super().remove_copies(path)
        return 0

    def write_atomic(self, path: str, content: bytes) -> FileEntry:
        make_folder(self._tree, self._place_in_tree)
        return super().write_atomic(path, content)

    def _resolved_root(self) -> str:
        """VaultUnavailable as ever where the tree itself is away; FileNotFoundError where only this folder is."""
        root = str(self.root)
        require_plain(self._tree, self._place_in_tree)
        try:
            with os.scandir(root):
                return os.path.realpath(root)
        except OSError as exc:
            msg = f"the vault {root} can't be read: {exc.strerror}"
            raise VaultUnavailable(msg) from exc


def _fits(namespace: Namespace) -> bool:
    """Labels have at most 128 characters, names of folders at most 255 bytes."""
    return all(len(name.encode()) <= FILE_NAME_MAX for name in place_of(namespace))


def place_of(namespace: Namespace) -> tuple[str, ...]:
    """Folders below the tree."""
    team = () if namespace.team_id is None else (namespace.team_id,)
    return (namespace.tenant_id, namespace.scope.value, *team, namespace.agent_id)


def root_of(folder: Path, namespace: Namespace) -> VaultRoot:
    """Its name is the place, cut where that is longer than names are."""
    place = place_of(namespace)
    name = ".".join(place)
    if len(name) > _NAME_MAX:
        digest = hashlib.sha256("/".join(place).encode()).hexdigest()[:16]
        name = f"{name[: _NAME_MAX - len(digest) - 1]}.{digest}"
    return VaultRoot(
        name=name,
        path=folder.joinpath(*place),
        tenant=namespace.tenant_id,
        agent=namespace.agent_id,
        scope=namespace.scope,
        team=namespace.team_id,
    )


def namespace_at(place: Sequence[str]) -> Namespace | None:
    """Whose folder it is; None: nobody's."""
    if not 3 <= len(place) <= 4:
        return None
    tenant, scope, *team, agent = place
    try:
        return Namespace(
            tenant_id=TenantId(tenant),
            agent_id=AgentId(agent),
            scope=Scope(scope),
            team_id=TeamId(team[0]) if team else None,
        )
    except ValueError:
        return None


def make_folder(tree: Path, place: Sequence[str]) -> None:
    """Real folders down to the place, the tree itself too if its parent is there. Raises OSError."""
    folder = tree
    _make(folder, follow=True)
    for segment in place:
        folder = folder / segment
        _make(folder, follow=False)


def require_plain(tree: Path, place: Sequence[str]) -> None:
    """Raises FileNotFoundError where the folder isn't there (yet), VaultUnavailable where the tree isn't.

    So it does where a symlink or a file stands in the way: it would lead into another's vault, or out of the tree.
    """
    try:
        with os.scandir(tree):
            pass
    except OSError as exc:
        if isinstance(exc, FileNotFoundError) and not os.path.lexists(tree) and tree.parent.is_dir():
            raise FileNotFoundError(
                errno.ENOENT, "nothing was written to the memory tree yet", str(tree)
            ) from exc
        msg = f"the memory tree {tree} can't be read: {exc.strerror}"
        raise VaultUnavailable(msg) from exc
    folder = tree
    for segment in place:
        folder = folder / segment
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            msg = f"{folder} is no folder of the memory tree"
            raise VaultUnavailable(msg)


def _make(folder: Path, *, follow: bool) -> None:
    try:
        folder.mkdir()
        sync_folder(folder.parent)
    except FileExistsError:
        mode = (folder.stat() if follow else os.lstat(folder)).st_mode
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, "no folder of the memory tree", str(folder)) from None


def _namespaces(tree: Path) -> Iterator[Namespace]:
    try:
        tenants = _folders(tree)
    except FileNotFoundError:
        return
    except OSError as exc:
        msg = f"the memory tree {tree} can't be read: {exc.strerror}"
        raise VaultUnavailable(msg) from exc
    for tenant in tenants:
        for scope in Scope:
            for place in _places(tree / tenant / scope.value, deep=2 if scope is Scope.TEAM else 1):
                namespace = namespace_at((tenant, scope.value, *place))
                if namespace is not None:
                    yield namespace


def _places(folder: Path, *, deep: int) -> Iterator[tuple[str, ...]]:
    for name in _folders_if_there(folder):
        if deep == 1:
            yield (name,)
        else:
            for below in _places(folder / name, deep=deep - 1):
                yield (name, *below)


def _folders_if_there(folder: Path) -> list[str]:
    try:
        return [] if folder.is_symlink() else _folders(folder)
    except OSError:
        return []


def _folders(folder: Path) -> list[str]:
    """Real ones alone, by name."""
    with os.scandir(folder) as items:
        return sorted(item.name for item in items if item.is_dir(follow_symlinks=False))
