"""Where the local stack keeps its things, and whether they can be kept there."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hopline.local.processes import OsUser
from indexers.errors import ConfigurationError

#: The engines' files (160 MB) once more while they are unpacked, and room for logs and a small index.
NEEDED_FREE_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StackFolders:
    """Everything below the data folder."""

    data_dir: Path

    @property
    def state(self) -> Path:
        return self.data_dir / "run" / "state.json"

    @property
    def plan(self) -> Path:
        return self.data_dir / "run" / "plan.json"

    @property
    def lock(self) -> Path:
        """Held by the supervisor for as long as it lives."""
        return self.data_dir / "run" / "stack.lock"

    @property
    def targets(self) -> Path:
        """For a Prometheus that watches the stack (file_sd)."""
        return self.data_dir / "prometheus-targets.json"

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def require_writable(folder: Path, *, setting: str) -> None:
    """Make the folder; raises ConfigurationError where it can't be written or the disk is nearly full."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 65_536)
        free = shutil.disk_usage(folder).free
    except OSError as exc:
        msg = f"can't write to {folder}: {exc.strerror}; make room or choose another folder with {setting}"
        raise ConfigurationError(msg) from exc
    if free < NEEDED_FREE_BYTES:
        free_mb, needed_mb = free // 1_000_000, NEEDED_FREE_BYTES // 1_000_000
        msg = f"{folder} has {free_mb} MB left and {needed_mb} MB are needed; make room or set {setting}"
        raise ConfigurationError(msg)


def require_entry(folder: Path, user: OsUser | None, *, setting: str) -> None:
    """OpenSearch's user must get into the folder. Names the parent that keeps it out."""
    barred = barrier(folder, user)
    if barred is not None and user is not None:
        msg = (
            f"OpenSearch runs as `{user.name}` (it refuses root), who can't enter {barred} "
            f"on the way to {folder}: choose another folder with {setting}, or `chmod o+x {barred}`"
        )
        raise ConfigurationError(msg)


def barrier(path: Path, user: OsUser | None) -> Path | None:
    """The first folder on the way that the user can't pass; None where nothing bars it. ACLs aren't read."""
    if user is None:
        return None
    real = path.resolve()
    way = [*reversed(real.parents), real]
    return next((folder for folder in way if folder.exists() and not _passable(folder.stat(), user)), None)


def _passable(status: os.stat_result, user: OsUser) -> bool:
    if status.st_uid == user.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == user.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)
