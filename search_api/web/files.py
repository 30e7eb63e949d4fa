"""The page's files, read once: what a request can name is what was found then."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "static"
#: Addresses of the files begin with this; `index.html` is `/` itself.
BELOW: Final = "/web/"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """`tag`, `packed_tag`: strong ones, so that each names its own bytes (RFC 9110, 8.8.3.3)."""

    media_type: str
    content: bytes
    packed: bytes
    tag: str
    packed_tag: str


def static_files(folder: Path = FOLDER) -> Mapping[str, StaticFile]:
    """By path. Raises FileNotFoundError where the package came without its page."""
    found = {path: static_file(path.read_bytes(), path.suffix) for path in sorted(folder.rglob("*.*"))}
    return {
        "/": found[folder / "index.html"],
        **{BELOW + path.relative_to(folder).as_posix(): file for path, file in found.items()},
    }


def static_file(content: bytes, suffix: str) -> StaticFile:
    digest = hashlib.sha256(content).hexdigest()[:32]
    return StaticFile(
        media_type=_TYPES[suffix],
        content=content,
        packed=gzip.compress(content, mtime=0),
        tag=f'"{digest}"',
        packed_tag=f'"{digest}-gzip"',
    )
