"""The local user's own key: `hopline up` writes it, the client reads it."""

from __future__ import annotations

from pathlib import Path

from indexers.errors import ConfigurationError
from search_api.keys import write_private


def local_key_file(data_dir: Path) -> Path:
    return data_dir / "api-key"


def write_local_key(data_dir: Path, key: str) -> None:
    """Readable by its owner only."""
    write_private(local_key_file(data_dir), key.encode() + b"\n")


def read_local_key(data_dir: Path) -> str | None:
    """None where `hopline up` has not made one."""
    path = local_key_file(data_dir)
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        msg = f"{path} can't be read: {exc}"
        raise ConfigurationError(msg) from exc
