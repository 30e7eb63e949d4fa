"""From paths of the operating system's events to identities of a vault. Blocks (resolves symlinks)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from indexers.domain.identity import normalise_path
from indexers.vault.ignore import is_walked_folder


def changed_identities(root: str, paths: Iterable[str]) -> set[str]:
    """Paths relative to `root` (resolved) that may be notes or folders of notes.

    The kernel watches a folder, not its name: where a symlink leads to it too, the event may carry either
    name. So the resolved one is looked at as well.
    """
    parents: dict[str, str] = {}
    found = set()
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in parents:
            parents[folder] = os.path.realpath(folder)
        for parent in {folder, parents[folder]}:
            identity = _identity(root, f"{parent}/{name}")
            if identity is not None:
                found.add(identity)
    return found


def _identity(root: str, path: str) -> str | None:
    if not path.startswith(f"{root}/"):
        return None
    relative = path[len(root) + 1 :]
    if not all(is_walked_folder(part) for part in relative.split("/")):
        return None
    try:
        return normalise_path(relative)
    except ValueError:
        return None  # a name that can't be an identity; scans report it
