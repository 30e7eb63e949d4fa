"""Vaults named to `hopline up --vault`: remembered in the data folder, for every later command."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from indexers.errors import ConfigurationError
from indexers.settings import VaultRoot

FILE = "vaults.json"


def read_remembered(data_dir: Path) -> tuple[VaultRoot, ...]:
    """Raises ConfigurationError when the file was edited into something else."""
    path = data_dir / FILE
    try:
        entries: list[Any] = json.loads(path.read_text(encoding="utf-8"))
        return tuple(VaultRoot.model_validate(entry) for entry in entries)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ()
    except (ValueError, TypeError, ValidationError) as exc:
        raise ConfigurationError(f"{path} is no list of vaults: {exc}") from exc


def remember(data_dir: Path, roots: Sequence[VaultRoot]) -> None:
    data_dir.mkdir(parents=True, exist_ok=True)
    text = json.dumps([root.model_dump(mode="json") for root in roots], ensure_ascii=False, indent=1)
    temporary = data_dir / f".{FILE}"
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(data_dir / FILE)


def join_vaults(first: Sequence[VaultRoot], more: Sequence[VaultRoot]) -> tuple[VaultRoot, ...]:
    """`first` wins where both hold the same folder or the same name."""
    paths = {root.path.resolve() for root in first}
    names = {root.name for root in first}
    added = [root for root in more if root.path.resolve() not in paths and root.name not in names]
    return (*first, *added)


def name_vaults(paths: Sequence[Path], known: Sequence[VaultRoot]) -> tuple[VaultRoot, ...]:
    """Roots for folders that aren't known yet, named after the folder, each with a namespace of its own.

    The first belongs to the local user, every further one to an agent of the vault's name; all are shared, so
    that the one local key sees all. Raises where one is no folder.
    """
    found: list[VaultRoot] = []
    for path in paths:
        real = path.expanduser().resolve()
        if not real.is_dir():
            raise ConfigurationError(f"--vault {path}: no folder there")
        so_far = (*known, *found)
        if real not in {root.path.resolve() for root in so_far}:
            found.append(_own_root(real, so_far))
    return tuple(found)


def forget(data_dir: Path, vault: str) -> VaultRoot:
    """Remove a remembered root by name or folder, and what was noted of it. Raises where there is none."""
    remembered = read_remembered(data_dir)
    folder = Path(vault).expanduser().resolve()
    found = [root for root in remembered if root.name == vault] or [
        root for root in remembered if root.path.resolve() == folder
    ]
    if not found:
        names = ", ".join(f"{root.name} ({root.path})" for root in remembered) or "none"
        raise ConfigurationError(f"no remembered vault is {vault!r}; remembered: {names}")
    gone = found[0]
    remember(data_dir, [root for root in remembered if root is not gone])
    (data_dir / "watcher" / f"{gone.name}.json").unlink(missing_ok=True)
    return gone


def _own_root(folder: Path, known: Sequence[VaultRoot]) -> VaultRoot:
    taken = {label for root in known for label in (root.name, root.agent)}
    name = _free_name(folder.name, taken)
    first = VaultRoot(name=name, path=folder)
    if first.namespace not in {root.namespace for root in known}:
        return first
    return VaultRoot(name=name, path=folder, agent=name)


def _free_name(folder: str, taken: Collection[str]) -> str:
    base = re.sub(r"[^\w.-]+", "-", folder).strip("-.")[:100] or "vault"
    names = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
