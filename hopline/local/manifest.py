"""What a downloaded folder must hold: sizes and hashes, so that a damaged or half-written file is found."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

NAME = "manifest.json"


def write_manifest(folder: Path, *, source: str) -> None:
    """Record every file below `folder`. `source` is a fingerprint of what the folder was made from."""
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != NAME
    }
    (folder / NAME).write_text(json.dumps({"source": source, "files": files}, indent=1), encoding="utf-8")


def first_fault(folder: Path, *, source: str) -> str | None:
    """What is wrong with the folder, or None. Files that the manifest doesn't know are no fault."""
    try:
        manifest = json.loads((folder / NAME).read_text(encoding="utf-8"))
        files = dict(manifest["files"])
        if manifest["source"] != source:
            return "made for another version"
    except FileNotFoundError:
        return "no manifest"
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest can't be read"
    faults = (_fault(folder / name, name, expected) for name, expected in files.items())
    return next((fault for fault in faults if fault is not None), None)


def damaged_archive(folder: Path) -> Path | None:
    """The first jar that isn't a whole zip file: Maven hands on what lies in its own repository unread."""
    for path in sorted(folder.rglob("*.jar")):
        try:
            with zipfile.ZipFile(path) as archive:
                if archive.testzip() is not None:
                    return path
        except (zipfile.BadZipFile, OSError, EOFError):
            return path
    return None


def _fault(path: Path, name: str, expected: dict[str, Any]) -> str | None:
    if not path.is_file():
        return f"{name} is missing"
    size = path.stat().st_size
    if size != expected["size"]:
        return f"{name} has {size} of {expected['size']} bytes"
    return f"{name} is damaged" if _sha256(path) != expected["sha256"] else None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
