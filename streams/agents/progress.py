"""Stage rows of the events that somebody may ask for: written once the store has what they tell of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from indexers.bookkeeping import ERASED
from indexers.domain.identity import Principal, TenantId
from indexers.event_rows import Followed, stage_row, stage_write
from indexers.opensearch.gate import Gate, RowAsked, RowRef
from indexers.opensearch.rows import EventRow, Index
from streams.batch import Poisoned
from streams.context import AgentContext
from streams.events import DocumentChanged, MemoryChanged, MemoryWrite, MentionsExtracted, PathEvent, now_iso

#: Events of one batch that a broken record may claim to follow.
_TRACKS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of one agent. A stage that is told again changes nothing."""

    gate: Gate
    context: AgentContext

    async def tell(self, rows: Sequence[EventRow]) -> None:
        """Waits while the store is away; a row that it refuses is not worth a document."""
        if not rows:
            return
        await self.context.hold("opensearch", lambda: self._write(rows))

    async def _write(self, rows: Sequence[EventRow]) -> None:
        """A row tells the document's path: of an erased one, whose events a replay brings again, none is written."""
        asked = [
            RowAsked(
                index=Index.GATE,
                ref=RowRef(principal=Principal.pipeline(TenantId(row.tenant_id)), row_id=row.doc_id),
                fields=("versions",),
            )
            for row in rows
        ]
        gates = await self.gate.get_rows(asked)
        writes = [
            stage_write(row)
            for row, gate in zip(rows, gates, strict=True)
            if gate is None or gate.source["versions"] != ERASED
        ]
        if writes:
            await self.gate.write(writes)

    async def failed(self, poisoned: Sequence[Poisoned]) -> None:
        """For `AgentContext.after_park`."""
        at, agent = now_iso(), self.context.spec.name
        rows = [
            stage_row(followed, "failed", at, part=agent, reason=one.error.error_class)
            for one in poisoned
            for followed in followed_by(one.record.value)
        ]
        await self.tell(rows)


def stages(
    followed: Iterable[Followed], stage: str, *, part: str | None = None, parts: Sequence[str] = ()
) -> list[EventRow]:
    at = now_iso()
    return [stage_row(one, stage, at, part=part, parts=parts) for one in followed]


def of_memory(events: Iterable[MemoryWrite | MemoryChanged]) -> list[Followed]:
    """Those among them that are followed."""
    return [_followed(event, event.event_id) for event in events if event.tracked]


def of_tracks(event: DocumentChanged | MentionsExtracted) -> list[Followed]:
    return [_followed(event, event_id) for event_id in event.tracks]


def followed_by(value: bytes | None) -> list[Followed]:
    """Of a record that is parked, which may be of any form."""
    try:
        claimed = msgspec.json.decode(value or b"", type=_Claim)
        ids = claimed.tracks[:_TRACKS_MAX] or ([claimed.event_id] if claimed.tracked else [])
        return [_followed(claimed, event_id) for event_id in ids]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return []


def _followed(event: PathEvent, event_id: str) -> Followed:
    return Followed(event_id=event_id, document=event.document, version=event.version)


class _Claim(PathEvent, frozen=True, kw_only=True):
    tracked: bool = False
    tracks: tuple[str, ...] = ()
