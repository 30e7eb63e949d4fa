"""How far a group is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from indexers.errors import Transient
from streams.admin import partition_counts
from streams.connect import KafkaConnection, close_client, kafka_faults, start_client
from streams.settings import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """`committed` is None where the group has committed nothing yet: then everything that is kept is waiting."""

    topic: str
    partition: int
    committed: int | None
    start: int
    end: int

    @property
    def lag(self) -> int:
        return self.end - max(self.start, self.committed or 0)


async def lag(settings: KafkaSettings, servers: str, group: str, topics: Sequence[str]) -> list[PartitionLag]:
    """Committed against end offsets of every partition, in order of topic and partition."""
    async with LagReader(settings, servers, group) as reader:
        return await reader.read(topics)


class LagReader:
    """Reads lag again and again over one connection, without joining the group."""

    def __init__(self, settings: KafkaSettings, servers: str, group: str) -> None:
        self._connection = KafkaConnection(servers=servers, settings=settings)
        self._seconds = settings.request_timeout_seconds
        self._group = group
        self._admin: AIOKafkaAdminClient | None = None
        self._consumer: AIOKafkaConsumer | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def read(
        self, topics: Sequence[str], partitions: Sequence[tuple[str, int]] | None = None
    ) -> list[PartitionLag]:
        """Of these partitions, else of all of the topics. Raises Transient; the next call connects anew."""
        try:
            with kafka_faults("reading the lag"):
                async with asyncio.timeout(2 * self._seconds):
                    return await self._read(topics, partitions)
        except Transient:
            await self.close()
            raise

    async def close(self) -> None:
        admin, self._admin = self._admin, None
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await close_client(consumer.stop, seconds=self._seconds)
        if admin is not None:
            await close_client(admin.close, seconds=self._seconds)

    async def _read(
        self, topics: Sequence[str], partitions: Sequence[tuple[str, int]] | None
    ) -> list[PartitionLag]:
        admin, consumer = await self._clients()
        if partitions is None:
            widths = await partition_counts(admin, topics)
            partitions = [(topic, p) for topic, width in widths.items() for p in range(width)]
        asked = [TopicPartition(topic, partition) for topic, partition in sorted(partitions)]
        if not asked:
            return []
        committed = await admin.list_consumer_group_offsets(self._group, partitions=asked)
        starts = await consumer.beginning_offsets(asked)
        ends = await consumer.end_offsets(asked)
        return [
            PartitionLag(
                topic=tp.topic,
                partition=tp.partition,
                committed=committed[tp].offset if tp in committed and committed[tp].offset >= 0 else None,
                start=starts[tp],
                end=ends[tp],
            )
            for tp in asked
        ]

    async def _clients(self) -> tuple[AIOKafkaAdminClient, AIOKafkaConsumer]:
        if self._admin is None:
            admin = AIOKafkaAdminClient(**self._connection.client_options())
            await start_client(admin.start, admin.close, seconds=self._seconds)
            self._admin = admin
        if self._consumer is None:
            consumer = AIOKafkaConsumer(**self._connection.client_options())
            await start_client(consumer.start, consumer.stop, seconds=self._seconds)
            self._consumer = consumer
        return self._admin, self._consumer
