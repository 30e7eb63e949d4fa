"""How far events are: from the rows that agents leave, one look or many until a milestone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from indexers.domain.identity import Principal
from indexers.errors import Transient
from indexers.event_rows import stage_id
from indexers.opensearch.gate import Gate, RowRef, StoredRow
from indexers.opensearch.rows import Index
from search_api.memories.answers import EventAnswer, FailureAnswer, Milestone, StageTold, State
from search_api.metrics import ApiMetrics
from search_api.problems import no_such
from search_api.stored import is_id

#: Agent → its stage: what an agent did after all takes its failure back (a replayed dead letter).
STAGE_OF: Final[Mapping[str, str]] = {
    "ingest": "ingested",
    "embed": "embedded",
    "extract": "extracted",
    "link": "linked",
}
_REACHED: Final[Mapping[Milestone, frozenset[State]]] = {
    "ingested": frozenset({"ingested", "searchable", "extracted", "linked"}),
    "searchable": frozenset({"searchable", "extracted", "linked"}),
    "linked": frozenset({"linked"}),
}
_OVER: Final[frozenset[State]] = frozenset({"failed", "overtaken"})
#: Pauses between looks, seconds: short at first, as most writes take no longer.
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 0.3

Rows = Mapping[str, Mapping[str, Any]]


class Events:
    """Raises ProblemError: 404 alike for what isn't there and what the principal may not see."""

    def __init__(self, gate: Gate, metrics: ApiMetrics) -> None:
        self._gate = gate
        self._metrics = metrics

    async def get(
        self, principal: Principal, event_id: str, *, until: Milestone | None = None, seconds: float = 0
    ) -> EventAnswer:
        found = await self.look(principal, [event_id]) if is_id(event_id) else {}
        if event_id not in found:
            raise no_such("event")
        if until is None:
            return found[event_id]
        [answer] = await self.follow(principal, [found[event_id]], until=until, seconds=seconds)
        return answer

    async def follow(
        self, principal: Principal, events: Sequence[EventAnswer], *, until: Milestone, seconds: float
    ) -> list[EventAnswer]:
        """Until all have reached it or never will, or the time is over. A store that is away ends it too."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline, pause = began + seconds, _FIRST_PAUSE
        known = {event.event_id: event for event in events}
        while waiting := [e.event_id for e in known.values() if not _is_there(e, until)]:
            left = deadline - loop.time()
            if left <= 0:
                break
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
            try:
                async with asyncio.timeout_at(deadline + _LONGEST_PAUSE):
                    known |= await self.look(principal, waiting)
            except (Transient, TimeoutError):
                break
        waited = self._metrics.memory_wait_seconds.labels(
            until=until, outcome=_outcome(known.values(), until)
        )
        waited.observe(loop.time() - began)
        return [known[event.event_id] for event in events]

    async def look(self, principal: Principal, event_ids: Sequence[str]) -> dict[str, EventAnswer]:
        """Those that the principal may see, as they are now."""
        wanted = {event_id: _row_ids(event_id) for event_id in event_ids}
        rows = await self._rows(principal, [row_id for ids in wanted.values() for row_id in ids])
        linked = {
            event_id: [
                stage_id(event_id, "linked", label)
                for label in rows.get(stage_id(event_id, "extracted"), {}).get("parts", ())
            ]
            for event_id in event_ids
        }
        rows |= await self._rows(principal, [row_id for ids in linked.values() for row_id in ids])
        return {
            event_id: progress_of(event_id, rows, linked[event_id])
            for event_id in event_ids
            if event_id in rows
        }

    async def _rows(self, principal: Principal, row_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        refs = [RowRef(principal=principal, row_id=row_id) for row_id in row_ids]
        found: list[StoredRow | None] = await self._gate.get_many(Index.EVENTS, refs) if refs else []
        return {row.row_id: row.source for row in found if row is not None}


def progress_of(event_id: str, rows: Rows, linked: Iterable[str]) -> EventAnswer:
    """Pure. `linked`: ids of the rows that link will have made, one a label."""
    accepted = rows[event_id]
    at = {"accepted": str(accepted["at"])}
    for stage in ("ingested", "embedded", "extracted"):
        row = rows.get(stage_id(event_id, stage))
        if row is not None:
            at[stage] = str(row["at"])
    links = [rows.get(row_id) for row_id in linked]
    if "extracted" in at and all(row is not None for row in links):
        at["linked"] = max([at["extracted"], *(str(row["at"]) for row in links if row is not None)])
    failure = _failure(event_id, rows, at)
    return EventAnswer(
        event_id=event_id,
        doc_id=accepted["doc_id"],
        path=accepted["path"],
        kind=accepted["kind"],
        version=accepted["version"],
        state=_state(at, failed=failure is not None, overtaken=stage_id(event_id, "overtaken") in rows),
        stages=[StageTold(stage=stage, at=moment) for stage, moment in at.items()],
        failure=failure,
    )


def _state(at: Mapping[str, str], *, failed: bool, overtaken: bool) -> State:
    """`embedded` is searchable: embed tells it once vectors are visible to search, and words are before that."""
    if failed:
        return "failed"
    if "embedded" in at:
        if "linked" in at:
            return "linked"
        return "extracted" if "extracted" in at else "searchable"
    if overtaken:
        return "overtaken"
    return "ingested" if len(at) > 1 else "accepted"


def _failure(event_id: str, rows: Rows, at: Mapping[str, str]) -> FailureAnswer | None:
    for agent, stage in STAGE_OF.items():
        row = rows.get(stage_id(event_id, "failed", agent))
        if row is not None and stage not in at:
            return FailureAnswer(reason=row["reason"] or "other")
    return None


def _outcome(events: Iterable[EventAnswer], until: Milestone) -> str:
    states = {event.state for event in events}
    if states <= _REACHED[until]:
        return "reached"
    return "ended" if states <= _REACHED[until] | _OVER else "late"


def _is_there(event: EventAnswer, until: Milestone) -> bool:
    return event.state in _REACHED[until] or event.state in _OVER


def _row_ids(event_id: str) -> list[str]:
    stages = [stage_id(event_id, s) for s in ("accepted", "ingested", "embedded", "extracted", "overtaken")]
    return stages + [stage_id(event_id, "failed", agent) for agent in STAGE_OF]
