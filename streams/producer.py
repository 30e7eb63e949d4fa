"""Writes events: a call returns only after the brokers have confirmed every record of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError, UnknownTopicOrPartitionError

from indexers.errors import HoplineError
from streams.connect import KafkaConnection, kafka_faults, start_client
from streams.settings import KafkaSettings
from streams.tracing import OFF, Tracing

#: Written to one partition before the next wait: bounds memory when a large batch is sent.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    topic: str
    key: bytes | None
    value: bytes | None


class RecordTooLarge(HoplineError):  # noqa: N818 - named as the fact
    """The record is over the broker's limit: send the content by reference (kafka.max_message_bytes)."""


class EventProducer:
    """Idempotent producer with acks=all; equal keys go to the same partition number of every topic of equal width.

    Use as an async context manager, or `start()` and `stop()`. One per process; safe for many tasks at once.
    """

    def __init__(self, settings: KafkaSettings, servers: str, *, tracing: Tracing = OFF) -> None:
        self._tracing = tracing
        self._connection = KafkaConnection(servers=servers, settings=settings)
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Raises Transient while no broker answers; may be called again."""
        async with self._starting:
            if self._producer is None:
                self._producer = await self._connected()

    async def stop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with kafka_faults("closing the producer"):
                await asyncio.wait_for(producer.stop(), self._connection.settings.request_timeout_seconds)

    async def send_all(self, records: Sequence[OutgoingRecord]) -> None:
        """Return when every record is confirmed. Raises Transient (repeat the whole call) or RecordTooLarge.

        Records of one key keep their order within a call. After Transient some may be there already: readers are
        idempotent. RecordTooLarge is raised before anything was sent.
        """
        for record in records:
            self._check_size(record)
        await self.start()
        for start in range(0, len(records), _AT_ONCE):
            await self._send(records[start : start + _AT_ONCE])

    async def _send(self, records: Sequence[OutgoingRecord]) -> None:
        if self._producer is None:
            msg = "the producer is closed"
            raise RuntimeError(msg)
        headers = self._tracing.headers() or None
        limit = 2 * self._connection.settings.request_timeout_seconds
        with kafka_faults("sending events"):
            try:
                async with asyncio.timeout(limit):
                    sent = [
                        await self._producer.send(r.topic, value=r.value, key=r.key, headers=headers)
                        for r in records
                    ]
                    await asyncio.gather(*sent)
            except MessageSizeTooLargeError as exc:
                msg = f"a broker's own limit (max.message.bytes) is below kafka.max_message_bytes: {exc}"
                raise RecordTooLarge(msg) from exc
            except UnknownTopicOrPartitionError as exc:
                msg = f"a topic is missing; `hopline topics` or `hopline up` creates them: {exc}"
                raise HoplineError(msg) from exc

    def _check_size(self, record: OutgoingRecord) -> None:
        size = len(record.key or b"") + len(record.value or b"")
        if size > self._connection.max_record_bytes(record.topic):
            msg = f"a record of {size} bytes for {record.topic} is over kafka.max_message_bytes: send it by reference"
            raise RecordTooLarge(msg)

    async def _connected(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            **self._connection.client_options(),
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            max_batch_size=131_072,
            max_request_size=self._connection.max_request_bytes,
        )
        with kafka_faults("reaching the brokers"):
            seconds = self._connection.settings.request_timeout_seconds
            await start_client(producer.start, producer.stop, seconds=seconds)
        return producer
