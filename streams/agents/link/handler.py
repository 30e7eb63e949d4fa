"""The link agent's batch: commands into the vault's journal, edges, names and entities, then what no longer stands."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from indexers.domain.identity import DocumentId, EntityNamespace, Principal
from indexers.errors import PoisonRecord
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import CurationRow, Index, owner_fields
from streams.agents.link.changes import Settled
from streams.agents.link.decode import Command, Decoded, Word, decode_mentions, newest_of_each
from streams.agents.link.edges import Edges, remove_outdated, write_edges
from streams.agents.link.erasing import ErasedCommands, erased_commands, remove_commands
from streams.agents.link.journal import CurationJournal
from streams.agents.link.outdated import slices
from streams.agents.link.settle import settle_names
from streams.agents.progress import Progress, of_tracks, stages
from streams.batch import Poisoned, Record
from streams.context import AgentContext
from streams.events import in_utc
from streams.metrics import LinkStage

T = TypeVar("T")
_log = structlog.get_logger("hopline.streams.link")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A decoded batch; `words`: the newest of each document and label."""

    words: list[Word]
    commands: list[Command]
    poisoned: list[Poisoned]
    outdated: int
    #: Of all words, those overtaken within the batch too.
    told_of: list[Word] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a batch did. Kept apart until it is done: a held stage begins again."""

    older: int = 0
    removed: int = 0
    written: int = 0
    rejected: list[Poisoned] = field(default_factory=list)
    settled: Settled = field(default_factory=Settled)
    #: Words whose edges, names and entities stand.
    current: list[Word] = field(default_factory=list)

    def findable(self) -> dict[DocumentId, str]:
        """When each document changed whose mentions can be found now. One may be told of under twenty labels."""
        refused = {one.record.place for one in self.rejected}
        return {
            word.doc_id: word.event.changed_at
            for word in self.current
            if word.event.changed_at is not None and word.record.place not in refused
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkHandler:
    """`BatchHandler` of the link agent. `files`: a thread for the journal."""

    gate: Gate
    journal: CurationJournal
    context: AgentContext
    progress: Progress
    files: Executor

    async def prepare(self, records: Sequence[Record]) -> Prepared:
        decoded: Decoded = decode_mentions(records)
        words = newest_of_each(decoded.words)
        return Prepared(
            words=words,
            commands=decoded.commands,
            poisoned=decoded.poisoned,
            outdated=len(decoded.words) - len(words),
            told_of=[word for word in decoded.words if word.event.tracks],
        )

    async def commit(self, prepared: Prepared) -> None:
        commands, refused = await self._journalled(prepared.commands)
        poisoned = [*prepared.poisoned, *refused]
        tallies = []
        if commands:
            tallies.append(await self.context.hold("opensearch", lambda: self._curate(commands)))
        for words in slices(prepared.words):
            edges, tally = await self.context.hold("opensearch", lambda w=words: self._link(w))  # type: ignore[misc]
            poisoned += await self._erase_curation(words, edges)
            tally.removed = await self.context.hold("opensearch", lambda e=edges: self._remove(e))  # type: ignore[misc]
            tallies.append(tally)
            self.context.beat()
        for tally in tallies:
            poisoned += tally.rejected
        await self._tell(prepared, poisoned)
        await self.context.park(poisoned)
        self._count(prepared, commands, tallies)

    async def _tell(self, prepared: Prepared, poisoned: Sequence[Poisoned]) -> None:
        refused = {one.record.place for one in poisoned}
        rows = [
            row
            for word in prepared.told_of
            if word.record.place not in refused
            for row in stages(of_tracks(word.event), "linked", part=word.event.label)
        ]
        await self.progress.tell(rows)

    async def _journalled(self, commands: Sequence[Command]) -> tuple[list[Command], list[Poisoned]]:
        """Those that stand in a vault now, and those whose vault is unknown or has been away for too long."""
        groups: defaultdict[EntityNamespace, list[Command]] = defaultdict(list)
        for command in commands:
            groups[command.place.namespace].append(command)
        kept: list[Command] = []
        refused: list[Poisoned] = []
        for namespace, members in groups.items():
            events = [command.event for command in members]
            try:
                standing = await self.context.hold(
                    "vault",
                    lambda n=namespace, e=events: self._run(lambda: self.journal.append(n, e)),  # type: ignore[misc]
                )
            except PoisonRecord as error:
                refused += [Poisoned(record=command.record, error=error) for command in members]
            else:
                kept += [command for command in members if command.event.event_id in standing]
        return kept, refused

    async def _curate(self, commands: Sequence[Command]) -> Tally:
        with self._timed("curation"):
            results = await self.gate.write([_row_write(command) for command in commands])
        tally = Tally()
        for command, result in zip(commands, results, strict=True):
            if result.status == "rejected":
                error = PoisonRecord("rejected_by_store", result.reason or "no reason given")
                tally.rejected.append(Poisoned(record=command.record, error=error))
        await self.gate.refresh(Index.CURATION, Index.MENTIONS, Index.ENTITIES, Index.PROPOSALS)
        with self._timed("names"):
            tally.settled = await settle_names(self.gate, Edges(), commands)
        return tally

    async def _link(self, words: Sequence[Word]) -> tuple[Edges, Tally]:
        """Outdated edges are still there."""
        with self._timed("edges"):
            edges = await write_edges(self.gate, words)
        with self._timed("names"):
            settled = await settle_names(self.gate, edges, [])
        return edges, Tally(
            older=edges.older,
            written=edges.written,
            rejected=edges.rejected,
            settled=settled,
            current=edges.current,
        )

    async def _remove(self, edges: Edges) -> int:
        with self._timed("edges"):
            removed = await remove_outdated(self.gate, edges)
            if removed:
                await self.gate.refresh(Index.MENTIONS)
        return removed

    async def _erase_curation(self, words: Sequence[Word], edges: Edges) -> list[Poisoned]:
        """The journal before the rows, as always: a rebuild must not bring back what is erased."""
        if not any(word.event.erased for word in words):
            return []
        hold = self.context.hold
        erased = await hold("opensearch", lambda: erased_commands(self.gate, words, edges))
        poisoned: list[Poisoned] = []
        for one in erased:
            try:
                await hold("vault", lambda e=one: self._run(lambda: self._blank(e)))  # type: ignore[misc]
            except PoisonRecord as error:
                poisoned += [
                    Poisoned(record=word.record, error=error)
                    for word in words
                    if word.event.erased and word.place.namespace == one.namespace
                ]
        await hold("opensearch", lambda: remove_commands(self.gate, erased))
        return poisoned

    def _blank(self, erased: ErasedCommands) -> int:
        return self.journal.erase(erased.namespace, set(erased.versions))

    def _count(self, prepared: Prepared, commands: Sequence[Command], tallies: Sequence[Tally]) -> None:
        metrics = self.context.metrics
        metrics.skipped.labels(reason="older").inc(prepared.outdated + sum(t.older for t in tallies))
        metrics.link_edges.labels(outcome="written").inc(sum(t.written for t in tallies))
        metrics.link_edges.labels(outcome="removed").inc(sum(t.removed for t in tallies))
        for outcome in ("created", "joined", "removed"):
            metrics.link_names.labels(outcome=outcome).inc(sum(getattr(t.settled, outcome) for t in tallies))
        metrics.findable("entity", {k: v for tally in tallies for k, v in tally.findable().items()}.values())
        self.context.note(
            words=sum(len(t.current) for t in tallies),
            commands=len(commands),
            edges=sum(t.written for t in tallies),
            removed_edges=sum(t.removed for t in tallies),
            older=prepared.outdated + sum(t.older for t in tallies),
        )
        metrics.link_proposals.inc(sum(t.settled.proposed for t in tallies))
        for command in commands:
            metrics.link_commands.labels(kind=command.event.kind).inc()
            # Audited: who and when, and the reason in the row; names of people and customers stay out of logs.
            _log.info(
                "curation.applied",
                tenant=command.place.tenant_id,
                namespace=command.place.namespace.owner,
                label=command.place.label,
                kind=command.event.kind,
                by=command.event.by,
                at=command.event.occurred_at,
                event_id=command.event.event_id,
            )

    @contextmanager
    def _timed(self, stage: LinkStage) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.context.metrics.link_seconds.labels(stage=stage).observe(time.perf_counter() - started)

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.files, call)


def _row_write(command: Command) -> RowWrite:
    event, namespace = command.event, command.place.namespace
    row = CurationRow(
        **owner_fields(namespace.namespace),
        namespace=namespace.owner,
        label=event.label,
        kind=event.kind,
        keys=list(event.keys),
        name=event.name,
        undoes=event.undoes,
        by=event.by,
        at=in_utc(event.occurred_at),
        reason=event.reason,
        version=event.version,
        event_id=event.event_id,
    )
    return RowWrite(
        principal=Principal.pipeline(namespace.tenant_id),
        index=Index.CURATION,
        row_id=event.event_id,
        action="index",
        row=row,
        version=event.version,
    )
