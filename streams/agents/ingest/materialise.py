"""Memory writes of a part of a batch become files, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from indexers.domain.identity import DocumentId
from indexers.errors import PoisonRecord, Transient
from indexers.opensearch.rows import GateRow
from indexers.together import together
from streams.agents.ingest.decode import MemoryEvent
from streams.agents.ingest.followed import known_hashes
from streams.agents.ingest.memories import CarriedOut, Memories, order_of
from streams.agents.ingest.plan import Sight
from streams.context import AgentContext
from streams.events import MemoryWrite

_Place = tuple[str, int, int]


@dataclass(slots=True, kw_only=True)
class Materialised:
    """By the record's place: what became of each memory write, or why nothing can become of it."""

    carried: dict[_Place, CarriedOut | None] = field(default_factory=dict)
    refused: dict[_Place, PoisonRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    sight: Sight
    event: MemoryWrite
    former: GateRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialise:
    """`writers`: threads that wait for the disk; syncs that meet share one commit of the file system's journal."""

    context: AgentContext
    memories: Memories
    writers: Executor

    async def all(self, sights: Sequence[Sight], rows: Mapping[DocumentId, GateRow]) -> Materialised:
        """Each is another document's file. Waits while a vault is away: for all its writes together."""
        written = Materialised()
        waiting = [
            _Due(sight=sight, event=sight.arrival.event, former=rows.get(sight.arrival.doc_id))
            for sight in sights
            if isinstance(sight.arrival.event, MemoryWrite)
        ]

        async def go_on() -> None:
            faults = await together(*(self._one(due, written) for due in waiting))
            waiting[:] = [due for due, fault in zip(waiting, faults, strict=True) if fault is not None]
            for fault in filter(None, faults):
                raise fault

        if waiting:
            await self.context.hold("vault", go_on)
        return written

    async def _one(self, due: _Due, written: Materialised) -> Transient | None:
        """None: nothing more is to be done for it."""
        place = due.sight.arrival.record.place
        call = partial(self.carry_out, due.sight, due.event, due.former)
        try:
            written.carried[place] = await asyncio.get_running_loop().run_in_executor(self.writers, call)
        except PoisonRecord as error:
            written.refused[place] = error
        except Transient as fault:
            return fault
        self.context.beat()
        return None

    def carried(
        self, written: Materialised, sight: Sight, event: MemoryEvent, former: GateRow | None
    ) -> CarriedOut | None:
        """As written before, else carried out now. Blocking. Raises what was raised then."""
        place = sight.arrival.record.place
        if place in written.refused:
            raise written.refused[place]
        if place in written.carried:
            return written.carried[place]
        return self.carry_out(sight, event, former)

    def carry_out(self, sight: Sight, event: MemoryEvent, former: GateRow | None) -> CarriedOut | None:
        """Blocking. A memory is a file before it is a row: the vault is the truth."""
        before = [one for one in sight.memories if one is not event and order_of(one) <= order_of(event)]
        return self.memories.carry_out(event, before, known_hashes(sight, former))
