"""Memory writes of a part of a batch become files, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from indexers.domain.identity import DocumentId
from indexers.errors import PoisonRecord
from indexers.opensearch.rows import GateRow
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
class Materialise:
    """`writers`: threads that wait for the disk; syncs that meet share one commit of the file system's journal."""

    context: AgentContext
    memories: Memories
    writers: Executor

    async def all(self, sights: Sequence[Sight], rows: Mapping[DocumentId, GateRow]) -> Materialised:
        """Each is another document's file. Waits while a vault is away."""
        written = Materialised()
        async with asyncio.TaskGroup() as tasks:
            for sight in sights:
                if isinstance(sight.arrival.event, MemoryWrite):
                    former = rows.get(sight.arrival.doc_id)
                    tasks.create_task(self._one(sight, sight.arrival.event, former, written))
        return written

    async def _one(
        self, sight: Sight, event: MemoryWrite, former: GateRow | None, written: Materialised
    ) -> None:
        place = sight.arrival.record.place
        loop = asyncio.get_running_loop()
        try:
            written.carried[place] = await self.context.hold(
                "vault",
                lambda: loop.run_in_executor(self.writers, lambda: self.carry_out(sight, event, former)),
            )
        except PoisonRecord as error:
            written.refused[place] = error

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
