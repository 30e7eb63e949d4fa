"""The bytes that an event speaks of: inline, from the vault, or rendered from a memory write. Blocking."""

from __future__ import annotations

from indexers.domain import hashing, memory_file
from indexers.domain.identity import DocumentKey
from indexers.domain.text import CUT_MARGIN_BYTES
from indexers.errors import PoisonRecord
from indexers.planning import FileContent
from streams.agents.ingest.decode import Arrival
from streams.agents.vaults import Vaults, read_vault
from streams.events import FileChange, MemoryChanged, MemoryWrite


def content_of(arrival: Arrival, vaults: Vaults, cap_bytes: int) -> FileContent | None:
    """None: there is no such file. Raises PoisonRecord, or Transient while the vault's root is away."""
    event = arrival.event
    if not isinstance(event, FileChange):
        return _of_memory(event, cap_bytes)
    if event.kind == "deleted":
        return None
    if event.content is not None:
        return inline_content(event.content, cap_bytes)
    try:
        return read_vault(vaults, arrival.document, cap_bytes)
    except FileNotFoundError:
        return None


def _of_memory(event: MemoryWrite | MemoryChanged, cap_bytes: int) -> FileContent | None:
    """What is known before the file is read: of a change, a size."""
    if isinstance(event, MemoryChanged):
        return None if event.is_ending else FileContent(head=b"", size=0, content_hash="")
    if event.updates is not None:
        return FileContent(head=b"", size=len(event.content), content_hash="")
    return inline_content(render(event), cap_bytes)


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
        **{name: getattr(event, name) for name in memory_file.FURTHER_FIELDS},
    )


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
