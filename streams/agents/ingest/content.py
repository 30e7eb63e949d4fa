"""The bytes that an event speaks of: inline, from the vault, or rendered from a memory write. Blocking."""

from __future__ import annotations

from indexers.domain import hashing, memory_file
from indexers.domain.identity import DocumentKey
from indexers.domain.text import CUT_MARGIN_BYTES
from indexers.planning import FileContent
from streams.agents.ingest.decode import Arrival
from streams.agents.vaults import Vaults, read_vault, vault_faults
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


def materialise(event: MemoryWrite, vaults: Vaults) -> str:
    """Write the file; returns the name that it has on disk."""
    key: DocumentKey = event.document
    with vault_faults(key.path):
        return vaults.of(key.namespace).write_atomic(key.path, render(event)).vault_path
