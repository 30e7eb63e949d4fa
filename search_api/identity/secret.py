"""The installation's secret: one file that all replicas share. Keys in the index are worthless without it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from indexers.errors import ConfigurationError

#: Fewer characters than 128 bits have in hexadecimal are no secret.
_MIN_CHARS = 32
_MAX_BYTES = 4_096
#: Its name in the data folder.
SECRET_FILE = "installation-secret"  # noqa: S105 - a file's name


class InstallationSecret:
    """Only what is derived from it is used, so that one purpose tells nothing about another."""

    __slots__ = ("_raw",)

    def __init__(self, text: str) -> None:
        """Raises ConfigurationError for a text that is too short."""
        if len(text.strip()) < _MIN_CHARS:
            msg = f"the installation's secret needs at least {_MIN_CHARS} random characters"
            raise ConfigurationError(msg)
        self._raw = text.strip().encode()

    @classmethod
    def read(cls, path: Path) -> InstallationSecret:
        """Raises ConfigurationError naming the file where it is missing or wrong."""
        try:
            with path.open("rb") as file:
                return cls(file.read(_MAX_BYTES).decode())
        except (OSError, UnicodeDecodeError) as exc:
            msg = f"{path}, the installation's secret, can't be read: {exc} (`hopline up` makes one)"
            raise ConfigurationError(msg) from exc
        except ConfigurationError as exc:
            msg = f"{path}: {exc}"
            raise ConfigurationError(msg) from exc

    @classmethod
    def ensure(cls, path: Path) -> InstallationSecret:
        """Made where there is none: 256 random bits, mode 0600. Of two processes that make it, one wins for both."""
        try:
            if not path.exists():
                _make(path)
        except OSError as exc:
            msg = f"{path}, the installation's secret, can't be made: {exc}"
            raise ConfigurationError(msg) from exc
        return cls.read(path)

    def derive(self, label: str) -> bytes:
        """32 bytes for one purpose: HMAC-SHA256 of the label (HKDF-Expand's first block, RFC 5869 §2.3)."""
        return hmac.digest(self._raw, f"hopline/{label}".encode() + b"\x01", hashlib.sha256)

    def __repr__(self) -> str:
        return "InstallationSecret(…)"


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(32).encode() + b"\n")
            file.flush()
            os.fsync(handle)
        # A link never replaces: the first one to come stays.
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink(missing_ok=True)
