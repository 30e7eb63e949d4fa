"""The second group of embed workers, as the brokers see it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from indexers.errors import HoplineError
from streams.admin import ensure_topics, topic_widths
from streams.agents.config import AgentConfig
from streams.agents.embed import second_group_part
from streams.connect import KafkaConnection, close_client, kafka_faults, start_client
from streams.lag import LagReader

_LOOK_SECONDS: Final = 0.5


def second_group(config: AgentConfig, number: int) -> str:
    return config.topics.group("embed") + second_group_part(number)


async def start_at_end(config: AgentConfig, number: int) -> None:
    """What is written from here on is the group's; what it has committed already stays (it can only be earlier)."""
    await ensure_topics(config.kafka, config.kafka_servers, config.topics)
    topic = config.topics.documents
    widths = await topic_widths(config.kafka, config.kafka_servers, [topic])
    parts = [TopicPartition(topic, part) for part in range(widths[topic])]
    seconds = config.kafka.request_timeout_seconds
    consumer = AIOKafkaConsumer(
        **_connection(config).client_options(),
        group_id=second_group(config, number),
        enable_auto_commit=False,
    )
    with kafka_faults("setting the second group's start"):
        await start_client(consumer.start, consumer.stop, seconds=seconds)
        try:
            consumer.assign(parts)
            committed = {part: await consumer.committed(part) for part in parts}
            ends = await consumer.end_offsets(parts)
            fresh = {part: ends[part] for part, offset in committed.items() if offset is None}
            if fresh:
                await consumer.commit(fresh)
        finally:
            await close_client(consumer.stop, seconds=seconds)


async def wait_until_level(config: AgentConfig, group: str, *, patience_seconds: float) -> None:
    """Until the group has committed what is in the topic now. HoplineError when it stands still for so long."""
    topics = (config.topics.documents,)
    async with LagReader(config.kafka, config.kafka_servers, group) as reader:
        ends = {part.partition: part.end for part in await reader.read(topics)}
        last, moved_at = -1, time.monotonic()
        while True:
            parts = await reader.read(topics)
            waiting = sum(max(0, ends[p.partition] - max(p.start, p.committed or 0)) for p in parts)
            if not waiting:
                return
            if waiting != last:
                last, moved_at = waiting, time.monotonic()
            if time.monotonic() - moved_at > patience_seconds:
                msg = (
                    f"{waiting} records wait for group {group} and nothing moved for {patience_seconds:.0f} s: "
                    "does `hopline agent embed --reindex` run? (the local stack starts it by itself)"
                )
                raise HoplineError(msg)
            await asyncio.sleep(_LOOK_SECONDS)


async def waiting_records(config: AgentConfig, group: str) -> int:
    async with LagReader(config.kafka, config.kafka_servers, group) as reader:
        return sum(part.lag for part in await reader.read((config.topics.documents,)))


async def members(config: AgentConfig, group: str) -> int:
    """Workers of the group."""
    seconds = config.kafka.request_timeout_seconds
    admin = AIOKafkaAdminClient(**_connection(config).client_options())
    with kafka_faults("reading a group's members"):
        await start_client(admin.start, admin.close, seconds=seconds)
        try:
            answers = await admin.describe_consumer_groups([group])
        finally:
            await close_client(admin.close, seconds=seconds)
    groups = [one for answer in answers for one in answer.to_object()["groups"]]
    return sum(len(one["members"]) for one in groups if one["group"] == group)


def _connection(config: AgentConfig) -> KafkaConnection:
    return KafkaConnection(servers=config.kafka_servers, settings=config.kafka)
