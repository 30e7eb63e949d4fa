"""The bytes that an event speaks of: inline, from the vault, or rendered from a memory write. Blocking."""

from __future__ import annotations

from collections.abc import Collection

from indexers.domain import hashing, memory_file
from indexers.domain.identity import DocumentKey
from indexers.domain.text import CUT_MARGIN_BYTES
from indexers.errors import PoisonRecord, Transient
from indexers.planning import FileContent
from indexers.ports import VaultFiles
from indexers.vault.content import read_content
from streams.agents.ingest.decode import Arrival
from streams.agents.vaults import Vaults, read_vault
from streams.events import MemoryWrite


def content_of(arrival: Arrival, vaults: Vaults, cap_bytes: int) -> FileContent | None:
    """None: there is no such file. Raises PoisonRecord, or Transient while the vault's root is away."""
    event = arrival.event
    if isinstance(event, MemoryWrite):
        return inline_content(render(event), cap_bytes)
    if event.kind == "deleted":
        return None
    if event.content is not None:
        return inline_content(event.content, cap_bytes)
    try:
        return read_vault(vaults, arrival.document, cap_bytes)
    except FileNotFoundError:
        return None


def read_or_none(vaults: Vaults, document: DocumentKey, cap_bytes: int) -> FileContent | None:
    """None where the file can't be had: whatever befell it is another event's. Transient while its root is awaited."""
    try:
        return read_vault(vaults, document, cap_bytes)
    except (FileNotFoundError, PoisonRecord):
        return None


def inline_content(raw: bytes, cap_bytes: int) -> FileContent:
    return FileContent(
        head=raw[: cap_bytes + CUT_MARGIN_BYTES], size=len(raw), content_hash=hashing.content_hash(raw)
    )


def render(event: MemoryWrite) -> bytes:
    """The file that the write becomes. One event renders to the same bytes, so its echo is a hash skip."""
    return memory_file.render(
        title=event.title,
        content=event.content,
        doc_type=event.doc_type,
        tags=event.tags,
        category=event.category,
        source=event.source,
        created=event.occurred_at,
    )


def materialise(event: MemoryWrite, vaults: Vaults, known: Collection[str]) -> str | None:
    """The write as a file; returns the name that it has on disk.

    None: a file is there that is neither this write nor of a `known` hash, so somebody edited it since. It stays
    as it is, and the word of it follows. A file that somebody deleted since can't be told from one that was
    never written: it is written (again), because losing an accepted write is worse.
    """
    key = event.document
    try:
        return _materialised(event, vaults, known)
    except FileNotFoundError as exc:
        # The file or its folder went between two looks: the next try sees them as they are then.
        raise Transient(f"{key.path}: {exc}") from exc


def _materialised(event: MemoryWrite, vaults: Vaults, known: Collection[str]) -> str | None:
    key, raw = event.document, render(event)
    with vaults.reach(key) as files:
        present = _present_hash(files, key.path)
        if present == hashing.content_hash(raw):
            return files.entry(key.path).vault_path
        if present is None or present in known:
            return files.write_atomic(key.path, raw).vault_path
        return None


def _present_hash(files: VaultFiles, path: str) -> str | None:
    try:
        return read_content(files, path, 0).content_hash
    except FileNotFoundError:
        return None
