"""From events to confirmed records. Broker away: wait, never drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexers.opensearch.retry import RetryPolicy
from streams.events import FileChange, encode
from streams.producer import EventProducer, OutgoingRecord
from streams.tracing import OFF, Tracing


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePublisher:
    """Sends to the topic of file changes. Returns once the broker has confirmed every record.

    Sending again after a doubtful failure repeats the same event ids and versions, which changes nothing.
    """

    producer: EventProducer
    topic: str
    retry: RetryPolicy
    tracing: Tracing = OFF

    async def publish(self, events: Sequence[FileChange]) -> None:
        records = [
            OutgoingRecord(topic=self.topic, key=event.document.record_key, value=encode(event))
            for event in events
        ]
        if records:
            with self.tracing.span("file changes", kind="producer") as span:
                span.tell({"records": len(records)})
                await self.retry.call(lambda: self.producer.send_all(records))
