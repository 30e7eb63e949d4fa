"""Keys of a file: `Authorization: Bearer KEY` → principal."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path

import structlog

from indexers.domain.identity import Principal
from indexers.errors import ConfigurationError
from search_api.keys import KeyEntry, key_digest, read_keys

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes when the file is replaced or edited."""

    inode: int
    size: int
    modified_ns: int


class KeyRing:
    """The keys of one file, read again when it changes: a change counts from the next request on.

    A file that became unreadable or wrong keeps the keys known last and is logged once per change; a file
    that is gone withdraws all. At start a wrong file is an error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = stamp_of(path)
        self._entries: tuple[KeyEntry, ...] = read_keys(path)

    def principal_of(self, authorization: str | None) -> Principal | None:
        """None: no key, not this scheme, or a key that isn't known."""
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return None
        return self.find(key.strip())

    def find(self, key: str) -> Principal | None:
        self._reload_when_changed()
        digest = key_digest(key)
        found: KeyEntry | None = None
        # All entries are compared, each in constant time: how long it takes says nothing about the keys.
        for entry in self._entries:
            if hmac.compare_digest(entry.sha256, digest):
                found = entry
        return None if found is None else found.principal

    def _reload_when_changed(self) -> None:
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._entries = read_keys(self._path)
        except (ConfigurationError, OSError) as exc:
            log.error("keys.refused", file=str(self._path), error=str(exc))  # noqa: TRY400 - the text says all
        else:
            log.info("keys.read", file=str(self._path), keys=len(self._entries))


def stamp_of(path: Path) -> Stamp | None:
    """None: there is no file, or none that can be looked at."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return Stamp(stat.st_ino, stat.st_size, stat.st_mtime_ns)
