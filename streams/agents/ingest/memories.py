"""Memory writes and what becomes of memories, carried out in the vault: the file comes before the rows. Blocking.

What an event makes of a file follows from the event and the file alone, and doing it twice is doing it once. So an
event that is delivered again finds its own work and goes on, and one finds out whether it was done at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from indexers.domain import hashing, memory_file
from indexers.domain.identity import DocumentKey
from indexers.domain.memory_revision import revise
from indexers.errors import PoisonRecord, Transient
from indexers.opensearch.rows import GateRow
from indexers.planning import FileContent
from indexers.ports import VaultFiles
from indexers.settings import IndexingSettings
from streams.agents.ingest.content import inline_content, render
from streams.agents.ingest.decode import MemoryEvent
from streams.agents.vaults import Vaults, read_vault
from streams.events import FileChange, MemoryChanged, MemoryWrite

#: A file that is rewritten is read whole; a person may have made it any size.
REVISED_MAX_BYTES: Final = 8_000_000
#: Age from which a temporary file beside an erased one is of a process that was killed: a write takes moments.
LEFTOVER_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut:
    """`content` None: the file is gone now. `done`: the events whose word the file says now."""

    vault_path: str
    content: FileContent | None
    done: tuple[MemoryEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """Of the vaults of one worker."""

    vaults: Vaults
    settings: IndexingSettings

    def carry_out(
        self, event: MemoryEvent, before: Sequence[MemoryEvent], known: Collection[str]
    ) -> CarriedOut | None:
        """`before`: older events of the same document that came with it. `known`: hashes that are nobody's edit.

        None: the file is neither of a known hash nor the work of these events, so somebody edited it since. It stays
        as it is, and the word of it follows. (To supersede replaces nothing of an edit.) A file that somebody deleted
        since can't be told from one that was never written: a write writes it (again), because losing an accepted
        write is worse; an update finds nothing that it could update.
        """
        key = event.document
        try:
            with self.vaults.reach(key) as files:
                if is_ending(event):
                    return self._end(event, before, files)
                return self._rewrite(event, sorted(before, key=order_of), known, files)
        except FileNotFoundError as exc:
            # The file or its folder went between two looks: the next try sees them as they are then.
            raise Transient(f"{key.path}: {exc}") from exc

    def says(self, event: MemoryEvent, raw: bytes | None) -> bool:
        """Whether the file is as the event would make it."""
        if is_ending(event):
            return raw is None
        return raw is not None and self._made(event, raw) == raw

    def _end(self, event: MemoryEvent, before: Sequence[MemoryEvent], files: VaultFiles) -> CarriedOut:
        path = event.document.path
        try:
            vault_path = files.entry(path).vault_path
        except FileNotFoundError:
            vault_path = path
            written = self._folded(sorted(before, key=order_of), None)
            if written is not None and isinstance(event, MemoryChanged) and event.kind == "forgotten":
                # Accepted and forgotten in one breath: a person can take it back all the same.
                files.write_atomic(path, written)
                files.set_aside(path)
        else:
            if isinstance(event, MemoryChanged) and event.kind == "forgotten":
                files.set_aside(path)
            else:
                files.remove(path)
        if isinstance(event, MemoryChanged) and event.kind == "erased":
            files.remove_copies(path)
            files.remove_leftovers(path.rpartition("/")[0], older_seconds=LEFTOVER_SECONDS)
        return CarriedOut(vault_path=vault_path, content=None, done=(event,))

    def _rewrite(
        self, event: MemoryEvent, before: Sequence[MemoryEvent], known: Collection[str], files: VaultFiles
    ) -> CarriedOut | None:
        path = event.document.path
        present = _read(files, path)
        events = (*before, event)
        ours = (
            present is None
            or hashing.content_hash(present) in known
            or any(self._made(one, present) == present for one in events)
        )
        if not ours and isinstance(event, MemoryWrite):
            return None
        wanted = self._folded(events if ours else (event,), present)
        if wanted is None:
            return None
        entry = files.entry(path) if wanted == present else files.write_atomic(path, wanted)
        return CarriedOut(
            vault_path=entry.vault_path,
            content=inline_content(wanted, self.settings.document_max_bytes),
            done=tuple(one for one in events if self._made(one, wanted) == wanted),
        )

    def _folded(self, events: Sequence[MemoryEvent], raw: bytes | None) -> bytes | None:
        for event in events:
            raw = None if is_ending(event) else self._made(event, raw)
        return raw

    def _made(self, event: MemoryEvent, raw: bytes | None) -> bytes | None:
        """What the event makes of the file; None: there is none, or none that can be changed."""
        if isinstance(event, MemoryChanged):
            fields: dict[str, Any] = {"superseded_by": event.superseded_by}
            return None if raw is None or is_ending(event) else self._revised(raw, fields, None)
        if event.updates is None:
            return render(event)
        if raw is None:
            return None
        fields = {name: getattr(event, name) for name in event.updates if name in UPDATABLE}
        return self._revised(
            raw, {n: v or None if n == "tags" else v for n, v in fields.items()}, event.content
        )

    def _revised(self, raw: bytes, fields: dict[str, Any], content: str | None) -> bytes | None:
        return revise(raw, fields, content, frontmatter_max_bytes=self.settings.frontmatter_max_bytes)


#: Fields that an update may name.
UPDATABLE: Final = ("title", "tags", "category", "source", *memory_file.FURTHER_FIELDS)


def is_ending(event: MemoryEvent) -> bool:
    return isinstance(event, MemoryChanged) and event.is_ending


def order_of(event: MemoryEvent) -> tuple[int, str]:
    return (event.version, event.event_id)


def is_out_of_date(
    event: FileChange, former: GateRow | None, content: FileContent | None, vaults: Vaults
) -> bool:
    """Whether a sight of a memory's file, or of a deleted one's, is of bytes that the vault has no more.

    A watcher may read a file just before a memory event changes or ends it, and tell of it after: by its version such
    a sight is the newest word, and would bring back for a moment what was forgotten.
    """
    is_memory = event.path.startswith(f"{memory_file.MEMORY_FOLDER}/")
    if event.content is None or content is None or not (is_memory or (former is not None and former.deleted)):
        return False
    try:
        return read_vault(vaults, event.document, 0).content_hash != content.content_hash
    except FileNotFoundError:
        return True


def is_as_indexed(document: DocumentKey, former: GateRow | None, vaults: Vaults) -> bool:
    """Whether the file is what the index has of it, or is gone like its row. Blocking."""
    try:
        found = read_vault(vaults, document, 0).content_hash
    except FileNotFoundError:
        return former is None or former.deleted
    return former is not None and not former.deleted and former.content_hash == found


def _read(files: VaultFiles, path: str) -> bytes | None:
    try:
        raw = files.read(path, max_bytes=REVISED_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(raw) > REVISED_MAX_BYTES:
        raise PoisonRecord("file_too_large", f"{path}: over {REVISED_MAX_BYTES} bytes, not a memory any more")
    return raw
