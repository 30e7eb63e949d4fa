"""Records of both input topics → what there is to decide about each document. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from indexers.domain.identity import DocumentId, DocumentKey
from indexers.errors import PoisonRecord
from streams.batch import Poisoned, Record
from streams.events import FileChange, MemoryChanged, MemoryWrite, decode, kind_of
from streams.topics import Topics

KINDS = ("upserted", "deleted")
MemoryEvent = MemoryWrite | MemoryChanged
InputEvent = FileChange | MemoryEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One event and the record that carried it."""

    record: Record
    event: InputEvent
    document: DocumentKey
    doc_id: DocumentId

    @classmethod
    def of(cls, record: Record, event: InputEvent) -> Arrival:
        """Names and ids are worked out once: a rescan passes here with every file of a vault."""
        document = event.document
        return cls(record=record, event=event, document=document, doc_id=document.doc_id)

    @property
    def order(self) -> tuple[int, str]:
        return (self.event.version, self.event.event_id)

    @property
    def is_deletion(self) -> bool:
        event = self.event
        if isinstance(event, MemoryWrite):
            return False
        return event.is_ending if isinstance(event, MemoryChanged) else event.kind == "deleted"

    @property
    def is_erasure(self) -> bool:
        return isinstance(self.event, MemoryChanged) and self.event.kind == "erased"

    @property
    def is_reference(self) -> bool:
        """Its bytes are in the vault alone."""
        event = self.event
        return isinstance(event, FileChange) and event.kind != "deleted" and event.content is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The events of one document within a batch: the newest wins.

    `write_before` is the newest memory write, or word on a memory, among the others. If the newest event turns out
    to be a mere sight of the file as it was before that, it still has to be done. `memories`: all memory events,
    the newest event too, oldest first: each may have been carried out before a crash.
    """

    newest: Arrival
    write_before: Arrival | None
    memories: tuple[MemoryEvent, ...]
    superseded: int

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        return (self.newest,) if self.write_before is None else (self.newest, self.write_before)


def decode_inputs(records: Sequence[Record], topics: Topics) -> tuple[list[Arrival], list[Poisoned]]:
    arrivals: list[Arrival] = []
    poisoned: list[Poisoned] = []
    for record in records:
        try:
            arrivals.append(Arrival.of(record, _decode_one(record, topics)))
        except PoisonRecord as error:
            poisoned.append(Poisoned(record=record, error=error))
    return arrivals, poisoned


def contests(arrivals: Sequence[Arrival]) -> dict[DocumentId, Contest]:
    grouped: defaultdict[DocumentId, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        grouped[arrival.doc_id].append(arrival)
    return {doc_id: _contest(members) for doc_id, members in grouped.items()}


def _contest(members: Sequence[Arrival]) -> Contest:
    newest, *others = _newest_first(members)
    writes = [other for other in others if not isinstance(other.event, FileChange)]
    observed = isinstance(newest.event, FileChange) and not newest.is_deletion
    return Contest(
        newest=newest,
        write_before=writes[0] if observed and writes else None,
        memories=tuple(
            a.event for a in sorted(members, key=lambda a: a.order) if not isinstance(a.event, FileChange)
        ),
        superseded=len(others),
    )


def _newest_first(members: Sequence[Arrival]) -> list[Arrival]:
    """By version; but an erasure goes before a mere deletion that came after it, such as the watcher's echo of it."""
    ordered = _ends_before_updates(sorted(members, key=lambda arrival: arrival.order, reverse=True))
    erasure = next((a for a in takewhile(lambda a: a.is_deletion, ordered) if a.is_erasure), None)
    return ordered if erasure is None else [erasure, *(a for a in ordered if a is not erasure)]


def _ends_before_updates(ordered: list[Arrival]) -> list[Arrival]:
    """The word that ends a memory goes before updates that came after it.

    In a batch of their own they'd find nothing to update; were they the newest word, the end would not be carried out.
    """
    at = next((n for n, arrival in enumerate(ordered) if _is_end(arrival.event)), None)
    if at is None:
        return ordered
    first = at
    while first > 0 and _is_update(ordered[first - 1].event):
        first -= 1
    return [*ordered[:first], ordered[at], *ordered[first:at], *ordered[at + 1 :]]


def _is_end(event: InputEvent) -> bool:
    return isinstance(event, MemoryChanged) and event.is_ending


def _is_update(event: InputEvent) -> bool:
    if isinstance(event, MemoryChanged):
        return not event.is_ending
    return isinstance(event, MemoryWrite) and event.updates is not None


def _decode_one(record: Record, topics: Topics) -> InputEvent:
    if record.topic == topics.memory_writes:
        if kind_of(record.value) is None:
            return decode(record.value, MemoryWrite)
        return decode(record.value, MemoryChanged)
    change = decode(record.value, FileChange)
    if change.kind not in KINDS:
        raise PoisonRecord("invalid_fields", f"kind {change.kind!r} is none of {', '.join(KINDS)}")
    for other in (change.moved_from, change.moved_to):
        if other is not None:
            _check_path(change, other)
    return change


def _check_path(change: FileChange, path: str) -> None:
    try:
        change.namespace.document(path)
    except ValueError as exc:
        raise PoisonRecord("invalid_fields", str(exc)) from exc
