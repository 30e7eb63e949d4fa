"""The ingest agent's batch: what it says, what it needs, its rows, the word to later agents, gate rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from indexers.domain.identity import DocumentId
from indexers.errors import PoisonRecord
from indexers.linking.unlinked import Naming
from indexers.linking.unlinked_texts import SaidTexts, VaultTexts
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import GateRow
from indexers.planning import SaidText
from streams.agents.ingest.content import content_of, read_or_none
from streams.agents.ingest.decode import Arrival, Contest, MemoryEvent, contests, decode_inputs
from streams.agents.ingest.due import Move, moves_of
from streams.agents.ingest.followed import known_of, told_of
from streams.agents.ingest.look import Look
from streams.agents.ingest.materialise import Materialise, Materialised
from streams.agents.ingest.memories import Memories, is_as_indexed, is_out_of_date
from streams.agents.ingest.plan import (
    Choice,
    Decided,
    Planner,
    Sight,
    choice_of,
    decide_all,
    slices,
    utc_now,
    without_overtaken,
)
from streams.agents.ingest.relations import Relations
from streams.agents.ingest.statements import Stated, split
from streams.agents.ingest.work import Work, announcement
from streams.agents.ingest.write import remove_erased, write_documents, write_gate_rows
from streams.agents.progress import Progress, of_memory, stages
from streams.agents.vaults import Vaults
from streams.batch import Poisoned, Record
from streams.context import AgentContext
from streams.events import FileChange, encode
from streams.producer import OutgoingRecord
from streams.topics import Topics

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A decoded batch: inline bytes as they came, of references only hashes. Nothing depends on what is stored."""

    choices: dict[DocumentId, Choice]
    poisoned: list[Poisoned]
    moves: list[Move] = field(default_factory=list)
    stated: list[Stated] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Planned:
    """Works of one part of a batch, each with its word to the later agents."""

    works: list[Work] = field(default_factory=list)
    words: list[OutgoingRecord] = field(default_factory=list)
    poisoned: list[Poisoned] = field(default_factory=list)
    #: Memory events whose file somebody has edited since, and events of a file that has changed since.
    left: int = 0
    #: Followed events that none of the works carries out.
    overtaken: list[MemoryEvent] = field(default_factory=list)

    def words_of(self, works: Sequence[Work]) -> list[OutgoingRecord]:
        wanted = {work.arrival.record.place for work in works}
        pairs = zip(self.works, self.words, strict=True)
        return [word for work, word in pairs if work.arrival.record.place in wanted]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestHandler:
    """`BatchHandler` of the ingest agent. `executor` bounds parsing and what it holds: one thread is enough."""

    gate: Gate
    vaults: Vaults
    memories: Memories
    materialise: Materialise
    progress: Progress
    topics: Topics
    planner: Planner
    relations: Relations
    context: AgentContext
    executor: Executor
    #: Largest text that travels inside an event, and largest event.
    inline_max_bytes: int
    event_max_bytes: int
    now: Callable[[], datetime] = utc_now
    said: SaidTexts = field(default_factory=SaidTexts)

    async def prepare(self, records: Sequence[Record]) -> Prepared:
        stated, others, bad = split(records, self.topics)
        arrivals, poisoned = decode_inputs(others, self.topics)
        grouped = contests(arrivals)
        wanted = [arrival for contest in grouped.values() for arrival in contest.arrivals]
        look = Look(vaults=self.vaults, cap_bytes=self._cap_bytes, waiting=wanted)
        await self.context.hold("vault", lambda: self._run(look.go_on))
        return Prepared(
            choices=_choices(grouped, look.sights),
            poisoned=bad + poisoned + look.unreadable,
            moves=moves_of(arrivals),
            stated=stated,
        )

    async def commit(self, prepared: Prepared) -> None:
        fingerprint = self.planner.versions.fingerprint
        rows, told = await self.context.hold("opensearch", lambda: known_of(self.gate, prepared.choices))
        rows = {doc_id: self.planner.versions.settled(row) for doc_id, row in rows.items()}
        choices = without_overtaken(prepared.choices, told)
        decided = decide_all(choices, rows, fingerprint)
        touched, left_behind = await self.relations.take_along(prepared.moves)
        poisoned = [*prepared.poisoned, *left_behind]
        older = len(prepared.choices) - len(choices)
        for part in slices(decided.to_do, self._cap_bytes):
            planned = await self._plan(part, rows)
            stale, refused = await self._store(planned)
            older += stale + planned.left
            poisoned += [*planned.poisoned, *refused]
        poisoned += await self.relations.finish(touched, prepared.stated)
        await self.progress.tell(
            [*stages(of_memory(decided.done), "ingested"), *stages(of_memory(decided.overtaken), "overtaken")]
        )
        await self.context.park(poisoned)
        self._count(decided, older=older)

    async def _store(self, planned: Planned) -> tuple[int, list[Poisoned]]:
        """Rows and edges, then the word to the later agents, then the gate rows. Number of stale works."""
        hold = self.context.hold
        naming = Naming(texts=self._texts(planned), in_degree_max=self.planner.settings.name_in_degree_max)
        written = await hold("opensearch", lambda: write_documents(self.gate, planned.works, naming))
        await self.relations.follow(written)
        await hold("opensearch", lambda: remove_erased(self.gate, written))
        await self.context.send(planned.words_of(written.applied))
        fingerprint = self.planner.versions.fingerprint
        told = told_of(written, planned.overtaken)
        ungated = await hold("opensearch", lambda: write_gate_rows(self.gate, written, fingerprint, told))
        occurred = [work.arrival.event.occurred_at for work in written.applied]
        self.context.metrics.findable("keyword", occurred)
        self.context.note(
            indexed=sum(work.planned is not None for work in written.applied),
            deleted=sum(work.planned is None for work in written.applied),
        )
        return len(written.stale), [*written.rejected, *ungated]

    def _texts(self, planned: Planned) -> VaultTexts:
        """Other documents' texts, those of this batch among them."""
        for work in planned.works:
            if work.planned is not None:
                said = SaidText(text=work.planned.text, said=work.planned.said)
                self.said.keep(work.document.doc_id, work.row.content_hash, said)
        return VaultTexts(
            read_file=lambda key: read_or_none(self.vaults, key, self._cap_bytes),
            settings=self.planner.settings,
            kept=self.said,
            run=lambda call: self.context.hold("vault", lambda: self._run(call)),
        )

    @property
    def _cap_bytes(self) -> int:
        return self.planner.settings.document_max_bytes

    async def _plan(self, sights: Sequence[Sight], rows: dict[DocumentId, GateRow]) -> Planned:
        planned = Planned()
        now = self.now()
        written = await self.materialise.all(sights, rows)
        for sight in sights:
            former = rows.get(sight.arrival.doc_id)
            try:
                made = await self.context.hold(
                    "vault",
                    lambda s=sight, f=former: self._run(lambda: self._work(s, f, now, written)),  # type: ignore[misc]
                )
            except PoisonRecord as error:
                planned.poisoned.append(Poisoned(record=sight.arrival.record, error=error))
            else:
                if made is None:
                    planned.left += 1
                    planned.overtaken += sight.memories
                else:
                    planned.works.append(made[0])
                    planned.words.append(made[1])
                    planned.overtaken += [one for one in sight.memories if one not in made[0].tracks]
            self.context.beat()
        return planned

    def _work(
        self, sight: Sight, former: GateRow | None, now: datetime, written: Materialised
    ) -> tuple[Work, OutgoingRecord] | None:
        """Blocking. None: the file has changed since, and the word of that is on its way."""
        event = sight.arrival.event
        if isinstance(event, FileChange):
            if is_out_of_date(event, former, sight.content, self.vaults):
                if sight.before is None or not is_as_indexed(event.document, former, self.vaults):
                    return None
                # The sight was of the past, and nobody has edited the file: what came before it is still to be done.
                return self._work(sight.before, former, now, written)
            vault_path = event.vault_path
            if sight.arrival.is_reference:
                # What changed since the look has an event of its own, with a newer version.
                sight = replace(sight, content=content_of(sight.arrival, self.vaults, self._cap_bytes))
            raw = None if sight.content is None else sight.content.head
            done = [one for one in sight.memories if self.memories.says(one, raw)]
        else:
            carried = self.materialise.carried(written, sight, event, former)
            if carried is None:
                return None
            if sight.arrival.is_erasure:
                self._erase_aside(sight.arrival)
            sight, vault_path = replace(sight, content=carried.content), carried.vault_path
            done = list(carried.done)
        tracks = [one for one in done if one.tracked]
        work = self.planner.work(sight, former, vault_path, now, tracks)
        return work, self._word(work)

    def _erase_aside(self, arrival: Arrival) -> None:
        """What else of the vault, and of this process, tells of the document. Blocking."""
        self.relations.journals.erase(arrival.document)
        self.said.drop(arrival.doc_id)

    def _word(self, work: Work) -> OutgoingRecord:
        """Made before any row is written: a document that can't be told of stays as it was, whole."""
        key = work.document.doc_id.encode()
        value = self._encoded(work)
        if len(key) + len(value) > self.event_max_bytes:
            raise PoisonRecord("event_too_large", f"{work.document.path}: too many chunks for one event")
        return OutgoingRecord(topic=self.topics.documents, key=key, value=value)

    def _encoded(self, work: Work) -> bytes:
        event = announcement(work, self.inline_max_bytes)
        value = encode(event)
        if len(value) > self.event_max_bytes and event.text is not None:
            value = encode(msgspec.structs.replace(event, text=None))
        return value

    def _count(self, decided: Decided, *, older: int) -> None:
        self.context.metrics.skipped.labels(reason="same").inc(decided.same)
        self.context.metrics.skipped.labels(reason="older").inc(decided.older + older)
        self.context.note(same=decided.same, older=decided.older + older)

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.executor, call)


def _choices(grouped: dict[DocumentId, Contest], sights: Sequence[Sight]) -> dict[DocumentId, Choice]:
    by_place = {sight.arrival.record.place: sight for sight in sights}
    found = {doc_id: choice_of(contest, by_place) for doc_id, contest in grouped.items()}
    return {doc_id: choice for doc_id, choice in found.items() if choice is not None}
