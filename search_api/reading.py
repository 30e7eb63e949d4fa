"""Texts of documents: read from the vault, believed only when they are what was indexed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, Final, Literal, Protocol, TypeVar

from indexers.domain.hashing import written_hash
from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId
from indexers.domain.text import CUT_MARGIN_BYTES, decode_text
from indexers.domain.text_window import TextFacts, WindowReader
from indexers.errors import VaultUnavailable
from indexers.vault.content import Lookup
from search_api.known_files import KnownFile, KnownFiles, Stamp

#: Why a document's text can't be shown. `no_vault`: this service has no vault of that namespace.
Unread = Literal["changed", "gone", "unreadable", "not_text", "no_vault", "vault_away"]
T = TypeVar("T")
READ_STEP_BYTES: Final = 262_144
#: Files of which is remembered that they are what was indexed.
KNOWN_FILES: Final = 1_024
#: Files that one thread reads one after the other: an ordinary page.
FILES_A_JOB: Final = 10


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
    """The file's code points from its start, as far as they were asked for."""

    text: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """text[start:end] of a file of `total_chars` code points."""

    text: str
    start: int
    end: int
    total_chars: int
    warnings: tuple[str, ...]


class VaultLibrary:
    """The vaults that this service reads, by namespace. Files are read and worked on in its executor.

    However large a file is, only the part asked for is kept; its hash is made of the bytes as they pass, once as
    long as the file's stamp stays the same.
    """

    def __init__(self, vaults: Lookup, executor: Executor) -> None:
        self._vaults = vaults
        self._executor = executor
        self._known = KnownFiles(KNOWN_FILES)

    async def apply(self, file: IndexedFile, work: Callable[[FileText], T], *, max_bytes: int) -> T | Unread:
        """`work` of the file's text (its first `max_bytes`), or why there is none."""
        [found] = await self.apply_all([(file, work)], max_bytes=max_bytes)
        return found

    async def apply_all(
        self, jobs: Sequence[tuple[IndexedFile, Callable[[FileText], T]]], *, max_bytes: int
    ) -> list[T | Unread]:
        """`apply` of each, in order; several files a thread, because a hand-over costs more than a short file."""

        def read_and_work(part: Sequence[tuple[IndexedFile, Callable[[FileText], T]]]) -> list[T | Unread]:
            return [self._worked(file, work, max_bytes) for file, work in part]

        run = asyncio.get_running_loop().run_in_executor
        if 0 < len(jobs) <= FILES_A_JOB:
            return await run(self._executor, read_and_work, jobs)
        parts = [jobs[start : start + FILES_A_JOB] for start in range(0, len(jobs), FILES_A_JOB)]
        done = await asyncio.gather(*(run(self._executor, read_and_work, part) for part in parts))
        return [found for part in done for found in part]

    async def page(self, file: IndexedFile, *, start: int, max_chars: int) -> TextPage | Unread:
        """So many code points from `start` on, or why there are none."""
        return await asyncio.get_running_loop().run_in_executor(
            self._executor,
            lambda: self._opened(file, lambda stream: self._page(file, stream, start, start + max_chars)),
        )

    def _worked(self, file: IndexedFile, work: Callable[[FileText], T], max_bytes: int) -> T | Unread:
        found = self._opened(file, lambda stream: self._head(file, stream, max_bytes))
        return work(found) if isinstance(found, FileText) else found

    def _opened(self, file: IndexedFile, read: Callable[[BinaryIO], T | Unread]) -> T | Unread:
        vault = self._vaults.get(_namespace(file))
        if vault is None:
            return "no_vault"
        try:
            with vault.open(file.path) as stream:
                return read(stream)
        except VaultUnavailable:
            return "vault_away"
        except (FileNotFoundError, ValueError):
            return "gone"
        except OSError:
            return "unreadable"

    def _head(self, file: IndexedFile, stream: BinaryIO, max_bytes: int) -> FileText | Unread:
        wanted = max_bytes + CUT_MARGIN_BYTES
        raw = b""
        stamp = Stamp.of(stream.fileno())
        known = self._known_as_indexed(file, stamp)
        if known is not None:
            raw = stream.read(wanted)
            stamp = Stamp.of(stream.fileno())
        if known is None or stamp != known.stamp:
            kept = bytearray()

            def take(piece: bytes) -> None:
                kept.extend(piece[: max(wanted - len(kept), 0)])

            if not self._check(file, stream, stamp, take):
                return "changed"
            raw = bytes(kept)
        decoded = decode_text(raw, max_bytes=max_bytes)
        return FileText(text=decoded.text, warnings=decoded.warnings) if decoded.is_text else "not_text"

    def _page(self, file: IndexedFile, stream: BinaryIO, start: int, end: int) -> TextPage | Unread:
        stamp = Stamp.of(stream.fileno())
        known = self._known_as_indexed(file, stamp)
        facts = None if known is None else known.facts
        window = WindowReader(start=start, end=end)
        if known is not None and facts is not None:
            window = _read_window(stream, facts, start, end)
            stamp = Stamp.of(stream.fileno())
        if known is None or facts is None or stamp != known.stamp:
            window = WindowReader(start=start, end=end)
            if not self._check(file, stream, stamp, window.feed, facts=window.facts):
                return "changed"
            facts = window.facts()
        if not facts.is_text:
            return "not_text"
        begin = min(start, facts.total_chars)
        return TextPage(
            text=window.text,
            start=begin,
            end=begin + len(window.text),
            total_chars=facts.total_chars,
            warnings=facts.warnings,
        )

    def _known_as_indexed(self, file: IndexedFile, stamp: Stamp) -> KnownFile | None:
        known = self._known.find(_namespace(file), file.path, stamp)
        return known if known is not None and known.content_hash == file.content_hash else None

    def _check(
        self,
        file: IndexedFile,
        stream: BinaryIO,
        stamp: Stamp,
        take: Callable[[bytes], None],
        *,
        facts: Callable[[], TextFacts] | None = None,
    ) -> bool:
        """Hand over the whole file piece by piece. True when it is what was indexed; then it is remembered.

        `stamp`: as it was a moment ago.
        """
        if stamp.size != file.size:
            return False
        digest = hashlib.sha256()
        stream.seek(0)
        # One byte more than was indexed: a file that grows meanwhile shows, however fast it grows.
        left = file.size + 1
        while left and (piece := stream.read(min(READ_STEP_BYTES, left))):
            digest.update(piece)
            take(piece)
            left -= len(piece)
            if len(piece) < READ_STEP_BYTES:
                break
        if written_hash(digest.hexdigest()) != file.content_hash:
            return False
        if Stamp.of(stream.fileno()) == stamp:
            made = None if facts is None else facts()
            known = KnownFile(stamp=stamp, content_hash=file.content_hash, facts=made)
            self._known.remember(_namespace(file), file.path, known)
        return True


def _read_window(stream: BinaryIO, facts: TextFacts, start: int, end: int) -> WindowReader:
    """From the mark before the window to its end: what a page costs doesn't depend on where it lies."""
    mark = facts.mark_before(start)
    window = WindowReader(start=start, end=end, begin=mark)
    stream.seek(mark.bytes)
    while not window.passed:
        piece = stream.read(READ_STEP_BYTES)
        window.feed(piece, final=not piece)
        if not piece:
            break
    return window


def _namespace(file: IndexedFile) -> Namespace:
    return _namespace_of(file.tenant_id, file.agent_id, file.scope, file.team_id)


@lru_cache(maxsize=256)
def _namespace_of(tenant_id: str, agent_id: str, scope: str, team_id: str | None) -> Namespace:
    """The files of a page have mostly one."""
    return Namespace(
        tenant_id=TenantId(tenant_id),
        agent_id=AgentId(agent_id),
        scope=Scope(scope),
        team_id=None if team_id is None else TeamId(team_id),
    )
