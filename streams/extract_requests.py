"""Ask for a namespace's documents to be extracted again. The extract agents do it page by page."""

from __future__ import annotations

from typing import Protocol

from indexers.domain.identity import EntityNamespace
from streams.event_fields import new_event_fields
from streams.events import ExtractRequested, encode
from streams.producer import OutgoingRecord
from streams.topics import Topics
from streams.versions import now_version


class Sender(Protocol):
    """`EventProducer`, or what holds on while the brokers are away."""

    async def send_all(self, records: list[OutgoingRecord]) -> None: ...


async def request_extraction(
    producer: Sender, topics: Topics, namespace: EntityNamespace, *, reason: str, whole: bool = False
) -> None:
    """Returns once the broker has it. Without `whole`, what is extracted as it would be now is left alone."""
    await producer.send_all([request_record(topics, namespace, reason=reason, whole=whole)])


def request_record(
    topics: Topics,
    namespace: EntityNamespace,
    *,
    reason: str,
    whole: bool = False,
    after: str | None = None,
    done: int = 0,
) -> OutgoingRecord:
    """One key a namespace: its pages are handled one after another."""
    owner = namespace.namespace
    event = ExtractRequested(
        **new_event_fields(owner),
        version=now_version(),
        reason=reason,
        after=after,
        done=done,
        whole=whole,
    )
    key = f"{namespace.tenant_id}/{namespace.owner}".encode()
    return OutgoingRecord(topic=topics.extract_requests, key=key, value=encode(event))
