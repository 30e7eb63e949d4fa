"""The ingest agent's batch: what it says, what it needs, its rows, the word to later agents, gate rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec

from indexers.domain.identity import DocumentId
from indexers.errors import PoisonRecord
from indexers.opensearch.gate import Gate, RowRef
from indexers.opensearch.rows import GateRow, Index
from streams.agents.ingest.content import content_of, materialise
from streams.agents.ingest.decode import Arrival, Contest, contests, decode_inputs
from streams.agents.ingest.plan import (
    Choice,
    Decided,
    Planner,
    Sight,
    choice_of,
    decide_all,
    slices,
    utc_now,
)
from streams.agents.ingest.work import Work, announcement
from streams.agents.ingest.write import write_documents, write_gate_rows
from streams.agents.vaults import Vaults
from streams.batch import Poisoned, Record
from streams.context import AgentContext
from streams.events import MemoryWrite, encode
from streams.producer import OutgoingRecord
from streams.topics import Topics

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A decoded batch with the bytes that it speaks of. Nothing in it depends on what is stored."""

    choices: dict[DocumentId, Choice]
    poisoned: list[Poisoned]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestHandler:
    """`BatchHandler` of the ingest agent. `executor` bounds parsing and files: one thread is enough."""

    gate: Gate
    vaults: Vaults
    topics: Topics
    planner: Planner
    context: AgentContext
    executor: Executor
    #: Largest text that travels inside an event, and largest event.
    inline_max_bytes: int
    event_max_bytes: int
    now: Callable[[], datetime] = utc_now

    async def prepare(self, records: Sequence[Record]) -> Prepared:
        arrivals, poisoned = decode_inputs(records, self.topics)
        grouped = contests(arrivals)
        wanted = [arrival for contest in grouped.values() for arrival in contest.arrivals]
        sights, unreadable = await self.context.hold(
            "vault", lambda: self._run(lambda: self._look_at(wanted))
        )
        choices = _choices(grouped, sights)
        return Prepared(choices=choices, poisoned=poisoned + unreadable)

    async def commit(self, prepared: Prepared) -> None:
        hold = self.context.hold
        fingerprint = self.planner.versions.fingerprint
        rows = await hold("opensearch", lambda: self._gate_rows(prepared.choices))
        decided = decide_all(prepared.choices, rows, fingerprint)
        poisoned = list(prepared.poisoned)
        stale = 0
        for part in slices(decided.to_do):
            works, unplanned = await hold("vault", lambda p=part: self._plan(p, rows))  # type: ignore[misc]
            stale_works, refused = await self._store(works)
            stale += stale_works
            poisoned += [*unplanned, *refused]
        await self.context.park(poisoned)
        self._count(decided, stale=stale)

    async def _store(self, works: Sequence[Work]) -> tuple[int, list[Poisoned]]:
        """Rows and edges, then the word to the later agents, then the gate rows. Number of stale works."""
        hold = self.context.hold
        written = await hold("opensearch", lambda: write_documents(self.gate, works))
        unsaid = await self._announce(written.applied)
        silent = {poisoned.record.place for poisoned in unsaid}
        done = [work for work in written.applied if work.arrival.record.place not in silent]
        fingerprint = self.planner.versions.fingerprint
        ungated = await hold("opensearch", lambda: write_gate_rows(self.gate, done, fingerprint))
        return len(written.stale), [*written.rejected, *unsaid, *ungated]

    def _look_at(self, arrivals: Sequence[Arrival]) -> tuple[list[Sight], list[Poisoned]]:
        sights: list[Sight] = []
        unreadable: list[Poisoned] = []
        for arrival in arrivals:
            try:
                content = content_of(arrival, self.vaults, self.planner.settings.document_max_bytes)
            except PoisonRecord as error:
                unreadable.append(Poisoned(record=arrival.record, error=error))
            else:
                sights.append(Sight(arrival=arrival, content=content))
        return sights, unreadable

    async def _gate_rows(self, choices: dict[DocumentId, Choice]) -> dict[DocumentId, GateRow]:
        refs = [
            RowRef(principal=choice.newest.arrival.document.namespace.principal, row_id=doc_id)
            for doc_id, choice in choices.items()
        ]
        found = await self.gate.get_many(Index.GATE, refs) if refs else []
        return {
            doc_id: msgspec.convert(row.source, GateRow)
            for doc_id, row in zip(choices, found, strict=True)
            if row is not None
        }

    async def _plan(
        self, sights: Sequence[Sight], rows: dict[DocumentId, GateRow]
    ) -> tuple[list[Work], list[Poisoned]]:
        works: list[Work] = []
        poisoned: list[Poisoned] = []
        now = self.now()
        for sight in sights:
            former = rows.get(sight.arrival.doc_id)
            try:
                works.append(await self._run(lambda s=sight, f=former: self._work(s, f, now)))  # type: ignore[misc]
            except PoisonRecord as error:
                poisoned.append(Poisoned(record=sight.arrival.record, error=error))
            self.context.beat()
        return works, poisoned

    def _work(self, sight: Sight, former: GateRow | None, now: datetime) -> Work:
        event = sight.arrival.event
        # A memory write is a file before it is a row: the vault is the truth.
        vault_path = materialise(event, self.vaults) if isinstance(event, MemoryWrite) else event.vault_path
        return self.planner.work(sight, former, vault_path, now)

    async def _announce(self, works: Sequence[Work]) -> list[Poisoned]:
        outgoing: list[OutgoingRecord] = []
        unsaid: list[Poisoned] = []
        for work in works:
            key = work.document.doc_id.encode()
            value = self._encoded(work)
            if len(key) + len(value) > self.event_max_bytes:
                error = PoisonRecord(
                    "event_too_large", f"{work.document.path}: too many chunks for one event"
                )
                unsaid.append(Poisoned(record=work.arrival.record, error=error))
            else:
                outgoing.append(OutgoingRecord(topic=self.topics.documents, key=key, value=value))
        await self.context.send(outgoing)
        return unsaid

    def _encoded(self, work: Work) -> bytes:
        event = announcement(work, self.inline_max_bytes)
        value = encode(event)
        if len(value) > self.event_max_bytes and event.text is not None:
            value = encode(msgspec.structs.replace(event, text=None))
        return value

    def _count(self, decided: Decided, *, stale: int) -> None:
        self.context.metrics.skipped.labels(reason="same").inc(decided.same)
        self.context.metrics.skipped.labels(reason="older").inc(decided.older + stale)

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.executor, call)


def _choices(grouped: dict[DocumentId, Contest], sights: Sequence[Sight]) -> dict[DocumentId, Choice]:
    by_place = {sight.arrival.record.place: sight for sight in sights}
    found = {doc_id: choice_of(contest, by_place) for doc_id, contest in grouped.items()}
    return {doc_id: choice for doc_id, choice in found.items() if choice is not None}
