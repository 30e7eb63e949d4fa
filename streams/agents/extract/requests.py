"""Requests to extract a namespace again: each record is one page, and ends by asking for the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.identity import EntityNamespace
from indexers.extracted import outdated_page
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index
from streams.agents.extract.subjects import Subject, of_document
from streams.batch import Poisoned, Record, decode_each
from streams.events import ExtractRequested
from streams.extract_requests import request_record
from streams.producer import OutgoingRecord
from streams.topics import Topics

#: Documents of one page: so long new documents of the same worker wait.
PAGE_DOCUMENTS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    record: Record
    event: ExtractRequested

    @property
    def owner(self) -> EntityNamespace:
        return EntityNamespace.of(self.event.namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """One page. `after`: where the next one begins; None: this was the last."""

    asked: Asked
    subjects: tuple[Subject, ...]
    after: str | None

    @property
    def log_fields(self) -> dict[str, object]:
        event, owner = self.asked.event, self.asked.owner
        return {
            "tenant": owner.tenant_id,
            "namespace": owner.owner,
            "reason": event.reason,
            "documents": len(self.subjects),
            "before": event.done,
            "last": self.after is None,
        }

    def next_record(self, topics: Topics) -> OutgoingRecord:
        event = self.asked.event
        return request_record(
            topics,
            self.asked.owner,
            reason=event.reason,
            whole=event.whole,
            after=self.after,
            done=event.done + len(self.subjects),
        )


def decode_requests(records: Sequence[Record]) -> tuple[list[Asked], list[Poisoned]]:
    """Those that ask for the same page are one."""
    decoded, poisoned = decode_each(records, ExtractRequested)
    asked: dict[tuple[EntityNamespace, str | None, bool], Asked] = {}
    for record, event in decoded:
        one = Asked(record=record, event=event)
        asked.setdefault((one.owner, event.after, event.whole), one)
    return list(asked.values()), poisoned


async def turn_page(gate: Gate, asked: Asked, fingerprint: str, *, most: int) -> Turned:
    """Repeated, it finds what is still to be done of the same stretch."""
    event = asked.event
    if event.after is None:
        # What was written before the request is found from here on.
        await gate.refresh(Index.DOCUMENTS)
    page = await outdated_page(
        gate, asked.owner, fingerprint=fingerprint, after=event.after, most=most, whole=event.whole
    )
    subjects = tuple(of_document(asked.record, found, whole=event.whole) for found in page.documents)
    return Turned(asked=asked, subjects=subjects, after=page.after)
