"""Statements about relations in `.hopline/relations.jsonl` of a vault root. Blocking."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from indexers.domain.entities.relations import Statement, by_path, check_statement
from indexers.errors import VaultUnavailable
from indexers.settings import VaultRoot
from indexers.vault.journal import Journal
from indexers.vault.local import LocalVaultFiles

RELATIONS_FILE: Final = "relations.jsonl"
#: Inode, size and time of the file: another one means that somebody wrote to it.
_Stamp = tuple[int, int, int]
_NO_FILE: Final[_Stamp] = (0, 0, 0)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Statement)


class RelationJournal:
    """One root's statements, kept in memory, read again where the file has changed: other workers append too."""

    def __init__(self, root: VaultRoot) -> None:
        self._root = root
        self._journal = Journal(root.path, RELATIONS_FILE)
        self._stamp: _Stamp | None = None
        self._by_path: Mapping[str, tuple[Statement, ...]] = {}
        #: Lines that are no statement about a document of this root.
        self.left_out = 0

    @property
    def known(self) -> Mapping[str, tuple[Statement, ...]]:
        """By path, as read last."""
        return self._by_path

    def has_changed(self) -> bool:
        return self._stamp != self._look()

    def read(self, require_root: Callable[[], object]) -> Mapping[str, tuple[Statement, ...]]:
        """By path. Raises OSError, and what `require_root` raises: without a root, no file says nothing."""
        stamp = self._look()
        # What is appended between look and reading is read twice, never missed.
        found = self._by_path if stamp == self._stamp else by_path(self._whole())
        if not found:
            require_root()
        self._by_path, self._stamp = found, stamp
        return found

    def append(self, statements: Sequence[Statement]) -> int:
        """Number of lines that are new. Raises OSError."""
        return self._journal.append({one.event_id: _encoder.encode(one) for one in statements})

    def erase(self, path: str) -> int:
        """Statements that cite this document, overwritten; how many. Raises OSError."""

        def cites(line: bytes) -> bool:
            statement = _statement(line)
            return statement is not None and statement.document == self._root.namespace.document(path)

        return self._journal.erase(cites)

    def _look(self) -> _Stamp:
        try:
            info = os.lstat(self._journal.path)
        except FileNotFoundError:
            return _NO_FILE
        return (info.st_ino, info.st_size, info.st_mtime_ns)

    def _whole(self) -> list[Statement]:
        """A folder that was copied from another tenant, or another owner, states nothing here."""
        found: list[Statement] = []
        self.left_out = 0
        for line in self._journal.lines():
            statement = _statement(line)
            if statement is not None and statement.document.namespace == self._root.namespace:
                found.append(statement)
            else:
                self.left_out += 1
        return found


def read_statements(root: VaultRoot) -> Mapping[str, tuple[Statement, ...]]:
    """By path. Raises VaultUnavailable, also where the root is there and its journal can't be read."""
    try:
        return RelationJournal(root).read(LocalVaultFiles(root.path).root_identity)
    except OSError as exc:
        raise VaultUnavailable(f"{root.name}: {exc}") from exc


def _statement(line: bytes) -> Statement | None:
    try:
        statement = _decoder.decode(line)
        check_statement(statement)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    return statement
