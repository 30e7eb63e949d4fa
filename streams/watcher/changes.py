"""Events of one root. Pure but for ids and the clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from indexers.domain.identity import Namespace
from streams.event_fields import new_event_fields
from streams.events import FileChange
from streams.watcher.reading import FileRead

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Origin = Literal["live", "scan", "rebuild"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFactory:
    """Makes the events of one namespace."""

    namespace: Namespace

    def upserted(self, read: FileRead, *, origin: Origin, moved_from: str | None) -> FileChange:
        return self._event(
            kind="upserted",
            path=read.entry.path,
            vault_path=read.entry.vault_path,
            version=read.version,
            size=read.entry.size,
            content=read.content,
            modified_at=modified_at(read.entry.modified_ns),
            moved_from=moved_from,
            origin=origin,
        )

    def deleted(self, path: str, *, version: int, origin: Origin, moved_to: str | None) -> FileChange:
        return self._event(
            kind="deleted", path=path, vault_path=path, version=version, moved_to=moved_to, origin=origin
        )

    def _event(self, **fields: object) -> FileChange:
        namespace = self.namespace
        return FileChange(
            **new_event_fields(namespace),
            **fields,  # type: ignore[arg-type]
        )


def modified_at(modified_ns: int) -> str | None:
    """None before the year 1 and after 9999: file systems hold such times, dates can't."""
    try:
        return (EPOCH + timedelta(microseconds=modified_ns // 1_000)).isoformat(timespec="microseconds")
    except OverflowError:
        return None
