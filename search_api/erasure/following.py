"""Erasures that nobody waits for any more are followed to their receipt, and what is late is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NoReturn

import structlog

from indexers.domain.identity import Principal
from indexers.erasures import read_erasure
from indexers.errors import RefusedRequest, Transient
from indexers.open_erasures import Note, note_closed, open_notes
from indexers.opensearch.gate import Gate
from search_api.erasure.service import Erasures
from search_api.metrics import ApiMetrics
from search_api.problems import ProblemError

log = structlog.get_logger()

#: Between two looks; notes that a look reads, and erasures that it follows.
_LOOK_SECONDS: Final = 30.0
_NOTES_MAX: Final = 200
_FOLLOWED_MAX: Final = 10
#: An erasure's row is written right after its note; without one after so long, its process ended in between.
_ROWLESS_SECONDS: Final = 300.0


@dataclass(slots=True, kw_only=True)
class OpenErasures:
    """Each process looks by itself, and all see the same: two that follow one erasure do what one does."""

    gate: Gate
    erasures: Erasures
    metrics: ApiMetrics
    #: When the oldest was asked for, seconds since 1970.
    _oldest: float | None = None
    #: Where the next look goes on following.
    _turn: int = 0
    _failing: bool = field(default=False)

    def __post_init__(self) -> None:
        self.metrics.erasure_oldest.set_function(self._oldest_seconds)

    async def run(self) -> NoReturn:
        """Until it is cancelled. Nothing that goes wrong here may end the process."""
        while True:
            try:
                await self.look()
            except (Transient, RefusedRequest, ProblemError, TimeoutError) as fault:
                if not self._failing:
                    log.warning("erasures.not_followed", reason=str(fault))
                self._failing = True
            except Exception:
                log.exception("erasures.not_followed")
            else:
                self._failing = False
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        notes, total = await open_notes(self.gate, most=_NOTES_MAX)
        done = await self._follow(self._next(notes))
        await note_closed(self.gate, sorted(done))
        left = [note for note in notes if note.erasure_id not in done]
        self.metrics.erasures_pending.set(total - len(done))
        self._oldest = min((_moment(note) for note in left), default=None)

    def _next(self, notes: Sequence[Note]) -> list[Note]:
        """The next few in turn, so that one that stays open holds up no other."""
        at = self._turn if self._turn < len(notes) else 0
        self._turn = at + _FOLLOWED_MAX
        return list(notes[at : at + _FOLLOWED_MAX])

    async def _follow(self, notes: Sequence[Note]) -> set[str]:
        """Ids of those that are not open any more."""
        return {note.erasure_id for note in notes if not await self._is_open(note)}

    async def _is_open(self, note: Note) -> bool:
        principal = Principal.pipeline(note.tenant_id)
        erasure = await read_erasure(self.gate, principal, note.erasure_id)
        if erasure is None:
            return time.time() - _moment(note) < _ROWLESS_SECONDS
        return erasure.receipt is None and not await self.erasures.advance(note.tenant_id, erasure)

    def _oldest_seconds(self) -> float:
        return 0.0 if self._oldest is None else max(0.0, time.time() - self._oldest)


def _moment(note: Note) -> float:
    then = datetime.fromisoformat(note.requested_at)
    return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()
