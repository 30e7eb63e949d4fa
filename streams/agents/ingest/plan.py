"""What each document of a batch needs: nothing, or work. Pure; planning is CPU, so off the event loop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from msgspec import structs

from indexers.bookkeeping import ERASED, fence, tombstone
from indexers.domain.hashing import Decision, content_hash, decide
from indexers.domain.identity import DocumentId
from indexers.errors import PoisonRecord
from indexers.opensearch.rows import GateRow
from indexers.planning import FileContent, IndexVersions, PlannedDocument, Seen, plan_document
from indexers.ports import TokenCounter
from indexers.settings import IndexingSettings
from streams.agents.ingest.content import inline_content, render
from streams.agents.ingest.decode import Arrival, Contest, MemoryEvent
from streams.agents.ingest.work import Work
from streams.events import FileChange, MemoryChanged, MemoryWrite

#: Text that is read, parsed and on its way into the store at once; in memory it is several times as much.
SLICE_BYTES = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """An arrival with the bytes it speaks of (of a reference only hash and size); None: no such file."""

    arrival: Arrival
    content: FileContent | None
    #: Memory events of the document in this batch, the arrival's own among them, oldest first.
    memories: tuple[MemoryEvent, ...] = ()
    #: Of a sight of the file: the word on the memory before it, still to be done should the sight be out of date.
    before: Sight | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One document's events of the batch, as sights."""

    newest: Sight
    write_before: Sight | None
    superseded: int


@dataclass(slots=True, kw_only=True)
class Decided:
    """What the gate lets through, how many events it doesn't, and their memory events: done already, or overtaken."""

    to_do: list[Sight] = field(default_factory=list)
    same: int = 0
    older: int = 0
    done: list[MemoryEvent] = field(default_factory=list)
    overtaken: list[MemoryEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Turns sights into work. Thread-safe as far as the counter is."""

    counter: TokenCounter
    settings: IndexingSettings
    versions: IndexVersions

    def work(
        self,
        sight: Sight,
        former: GateRow | None,
        vault_path: str,
        now: datetime,
        tracks: Sequence[MemoryEvent] = (),
    ) -> Work:
        """`tracks`: followed events that this carries out. Raises PoisonRecord for a text that no parser can take."""
        seen = seen_of(sight.arrival, vault_path)
        stamp = now.isoformat(timespec="milliseconds")
        if sight.content is None:
            until = (now + timedelta(days=self.settings.tombstone_days)).isoformat(timespec="milliseconds")
            # An erased document stays one, whatever the watcher tells of its file's end.
            erased = sight.arrival.is_erasure or (former is not None and former.versions == ERASED)
            row = (fence if erased else tombstone)(seen, indexed_at=stamp, until=until)
            planned = None
        else:
            planned = self._plan(seen, sight.content, stamp)
            row = planned.row
        return Work(
            arrival=sight.arrival, seen=seen, row=row, planned=planned, former=former, tracks=tuple(tracks)
        )

    def _plan(self, seen: Seen, content: FileContent, stamp: str) -> PlannedDocument:
        try:
            return plan_document(
                seen,
                content,
                counter=self.counter,
                settings=self.settings,
                versions=self.versions,
                indexed_at=stamp,
            )
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as exc:
            # A bug in the parser costs one document, which its letter names, not the partition.
            raise PoisonRecord("parse_failed", f"{seen.document.path}: {type(exc).__name__}") from exc


def decide_all(
    choices: Mapping[DocumentId, Choice], rows: Mapping[DocumentId, GateRow], versions: str
) -> Decided:
    decided = Decided()
    for doc_id, choice in choices.items():
        decided.older += choice.superseded
        row = rows.get(doc_id)
        verdict = decide_sight(choice.newest, versions, row)
        before = choice.write_before
        if verdict is Decision.SKIP_SAME and before is not None:
            # The newest event saw the file as it was: the write before it is not done yet.
            decided.same += 1
            decided.older -= 1
            verdict, sight = decide_sight(before, versions, row), before
        else:
            is_due = before is not None and decide_sight(before, versions, row) is Decision.INDEX
            sight = replace(choice.newest, before=before if is_due else None)
        _account(decided, sight, verdict, row)
    return decided


def _account(decided: Decided, sight: Sight, verdict: Decision, row: GateRow | None) -> None:
    own = sight.arrival.event
    others = [event for event in sight.memories if event is not own]
    match verdict:
        case Decision.INDEX:
            decided.to_do.append(sight)
        case Decision.SKIP_SAME:
            decided.same += 1
            decided.overtaken += others
            decided.done += [] if isinstance(own, FileChange) else [own]
        case Decision.SKIP_OLDER if row is not None and (again := _told_again(sight, row)) is not None:
            decided.to_do.append(again)
        case Decision.SKIP_OLDER:
            decided.older += 1
            decided.overtaken += sight.memories


def _told_again(sight: Sight, row: GateRow) -> Sight | None:
    """A write that a worker's end left half done, and whose file was seen meanwhile: all is there but its progress.

    The later agents are told again of what is indexed, now with the event that it follows from.
    """
    for event in reversed(sight.memories):
        if isinstance(event, MemoryWrite) and event.tracked and event.updates is None and not row.deleted:
            raw = render(event)
            if content_hash(raw) == row.content_hash:
                told = structs.replace(event, version=row.version, event_id=row.event_id, tracked=False)
                content = replace(inline_content(raw, len(raw)), head=raw)
                return Sight(
                    arrival=replace(sight.arrival, event=told), content=content, memories=(event, told)
                )
    return None


def without_overtaken(
    choices: Mapping[DocumentId, Choice], told: Collection[str]
) -> dict[DocumentId, Choice]:
    """`told`: ids of events that were overtaken when they first came. Their caller knows, so they stay it.

    An edit that such an event left alone is indexed by now, maybe with an older version: delivered again, the event
    would take it for the state that it may replace.
    """
    kept: dict[DocumentId, Choice] = {}
    for doc_id, choice in choices.items():
        before = choice.write_before
        if choice.newest.arrival.event.event_id in told:
            continue
        if before is not None and before.arrival.event.event_id in told:
            choice = replace(choice, write_before=None)  # noqa: PLW2901 - the same choice, less of it
        kept[doc_id] = choice
    return kept


def decide_sight(sight: Sight, versions: str, row: GateRow | None) -> Decision:
    event = sight.arrival.event
    if row is not None and not isinstance(event, FileChange) and (event.tracked or not is_whole(event)):
        return _decide_memory(event, versions, row)
    return decide(
        event_version=event.version,
        event_id=event.event_id,
        content_hash=None if sight.content is None else sight.content.content_hash,
        versions=versions,
        row=row,
    )


def _decide_memory(event: MemoryEvent, versions: str, row: GateRow) -> Decision:
    """What it makes of the file is not known yet. One that is followed is told of, whatever the file says."""
    if (event.version, event.event_id) < (row.version, row.event_id):
        return Decision.SKIP_OLDER
    is_done = event.event_id == row.event_id and row.content_hash != "" and row.versions == versions
    if row.deleted:
        is_done = event.event_id == row.event_id and isinstance(event, MemoryChanged) and event.is_ending
    return Decision.SKIP_SAME if is_done else Decision.INDEX


def is_whole(event: MemoryEvent) -> bool:
    """The event alone says what the file is."""
    return isinstance(event, MemoryWrite) and event.updates is None


def choice_of(contest: Contest, sights: Mapping[tuple[str, int, int], Sight]) -> Choice | None:
    """None where no event of the document could be read; those are in dead letters."""
    found = [sights[a.record.place] for a in contest.arrivals if a.record.place in sights]
    readable = [replace(sight, memories=contest.memories) for sight in found]
    if not readable:
        return None
    newest, *others = readable
    return Choice(newest=newest, write_before=others[0] if others else None, superseded=contest.superseded)


def slices(sights: Sequence[Sight], cap_bytes: int) -> Iterator[list[Sight]]:
    """Read, planned and written part by part, so that a batch of large files stays bounded in memory."""
    part: list[Sight] = []
    size = 0
    for sight in sights:
        own = 0 if sight.content is None else min(sight.content.size, cap_bytes)
        if part and size + own > SLICE_BYTES:
            yield part
            part, size = [], 0
        part.append(sight)
        size += own
    if part:
        yield part


def seen_of(arrival: Arrival, vault_path: str) -> Seen:
    event = arrival.event
    change = event if isinstance(event, FileChange) else None
    return Seen(
        document=arrival.document,
        vault_path=vault_path,
        version=event.version,
        event_id=event.event_id,
        modified_at=event.occurred_at if change is None else change.modified_at,
        moved_from=None if change is None else change.moved_from,
    )


def utc_now() -> datetime:
    return datetime.now(UTC)
