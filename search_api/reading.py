"""Texts of documents: read from the vault, believed only when they are what was indexed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from indexers.domain.hashing import content_hash
from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId
from indexers.domain.text import decode_text
from indexers.errors import VaultUnavailable
from indexers.ports import VaultFiles

#: Why a document's text can't be shown. `no_vault`: this service has no vault of that namespace.
Unread = Literal["changed", "gone", "unreadable", "not_text", "no_vault", "vault_away"]
T = TypeVar("T")


class IndexedFile(Protocol):
    """What the index says of a file; a document row or its view."""

    @property
    def tenant_id(self) -> str: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def team_id(self) -> str | None: ...
    @property
    def scope(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def content_hash(self) -> str: ...
    @property
    def size(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """Exactly the file's code points, from its start."""

    text: str
    left_out_bytes: int
    warnings: tuple[str, ...]


class VaultLibrary:
    """The vaults that this service reads, by namespace. Files are read and worked on in its executor."""

    def __init__(self, vaults: Mapping[Namespace, VaultFiles], executor: Executor) -> None:
        self._vaults = dict(vaults)
        self._executor = executor

    async def apply(
        self, file: IndexedFile, work: Callable[[FileText], T], *, max_bytes: int | None = None
    ) -> T | Unread:
        """`work` of the file's text (its first `max_bytes`), or why there is none."""

        def read_and_work() -> T | Unread:
            found = self._read(file, max_bytes)
            return work(found) if isinstance(found, FileText) else found

        return await asyncio.get_running_loop().run_in_executor(self._executor, read_and_work)

    def _read(self, file: IndexedFile, max_bytes: int | None) -> FileText | Unread:
        raw = self._bytes(file)
        if isinstance(raw, str):
            return raw
        if len(raw) != file.size or content_hash(raw) != file.content_hash:
            return "changed"
        decoded = decode_text(raw, max_bytes=len(raw) if max_bytes is None else max_bytes)
        if not decoded.is_text:
            return "not_text"
        return FileText(text=decoded.text, left_out_bytes=decoded.left_out_bytes, warnings=decoded.warnings)

    def _bytes(self, file: IndexedFile) -> bytes | Unread:
        vault = self._vaults.get(_namespace(file))
        if vault is None:
            return "no_vault"
        try:
            # One byte more than was indexed: a file that grew shows, whatever its size is now.
            return vault.read(file.path, max_bytes=file.size + 1)
        except VaultUnavailable:
            return "vault_away"
        except (FileNotFoundError, ValueError):
            return "gone"
        except OSError:
            return "unreadable"


def _namespace(file: IndexedFile) -> Namespace:
    return Namespace(
        tenant_id=TenantId(file.tenant_id),
        agent_id=AgentId(file.agent_id),
        scope=Scope(file.scope),
        team_id=None if file.team_id is None else TeamId(file.team_id),
    )
