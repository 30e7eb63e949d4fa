"""Topics as they must be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError, for_code

from indexers.errors import ConfigurationError, Transient
from streams.connect import (
    DEAD_LETTER_FACTOR,
    DEAD_LETTERS_SUFFIX,
    KafkaConnection,
    close_client,
    kafka_faults,
    start_client,
)
from streams.settings import KafkaSettings
from streams.topics import SEGMENT_MS, Topics

_CREATE_SECONDS: Final = 30.0
_log = structlog.get_logger("hopline.streams.admin")


async def ensure_topics(settings: KafkaSettings, servers: str, topics: Topics) -> None:
    """Create what is missing. Existing topics keep their settings; differences are logged.

    Raises ConfigurationError where the two input topics differ in their partition count: one process must see all
    events of a document.
    """
    connection = KafkaConnection(servers=servers, settings=settings)
    async with _admin(connection) as admin:
        present = await partition_counts(admin, tuple(topics.retention_ms))
        missing = [name for name in topics.retention_ms if name not in present]
        if missing:
            await _create(admin, connection, topics, _width_of_missing(settings, topics, present), missing)
            present = await _await_topics(admin, tuple(topics.retention_ms))
        _check_inputs(topics, present)
        await _log_differences(admin, {name: _configuration(connection, topics, name) for name in present})


async def delete_topics(settings: KafkaSettings, servers: str, names: Sequence[str]) -> None:
    """For tests and `hopline down --delete`: topics that don't exist are no error."""
    async with _admin(KafkaConnection(servers=servers, settings=settings)) as admin:
        present = await partition_counts(admin, names)
        if present:
            answer = await admin.delete_topics(list(present))
            for topic, code in ((entry[0], entry[1]) for entry in answer.topic_error_codes):
                _raise_for(code, topic, UnknownTopicOrPartitionError)


async def topic_widths(settings: KafkaSettings, servers: str, names: Sequence[str]) -> dict[str, int]:
    """Partition counts of those of the topics that exist."""
    async with _admin(KafkaConnection(servers=servers, settings=settings)) as admin:
        return await partition_counts(admin, names)


@asynccontextmanager
async def _admin(connection: KafkaConnection) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**connection.client_options())
    seconds = connection.settings.request_timeout_seconds
    with kafka_faults("administering topics"):
        async with asyncio.timeout(_CREATE_SECONDS):
            await start_client(admin.start, admin.close, seconds=seconds)
            try:
                yield admin
            finally:
                await close_client(admin.close, seconds=seconds)


async def partition_counts(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, int]:
    """Of those topics that exist."""
    # Asking for all topics, not by name: a broker with auto.create.topics.enable makes what it is asked for.
    wanted = set(names)
    return {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics() if t["topic"] in wanted}


def _width_of_missing(settings: KafkaSettings, topics: Topics, present: Mapping[str, int]) -> dict[str, int]:
    """A missing input topic takes the count of its present partner."""
    partner = next((present[name] for name in topics.inputs if name in present), settings.partitions)
    return {name: partner if name in topics.inputs else settings.partitions for name in topics.retention_ms}


async def _create(
    admin: AIOKafkaAdminClient,
    connection: KafkaConnection,
    topics: Topics,
    widths: Mapping[str, int],
    missing: Sequence[str],
) -> None:
    answer = await admin.create_topics(
        [
            NewTopic(
                name,
                widths[name],
                connection.settings.replication_factor,
                topic_configs=_configuration(connection, topics, name),
            )
            for name in missing
        ]
    )
    for entry in answer.topic_errors:
        _raise_for(entry[1], f"{entry[0]}: {entry[2]}", TopicAlreadyExistsError)


async def _await_topics(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, int]:
    """A created topic shows in the metadata a moment later; a writer that comes first gets an error."""
    while True:
        present = await partition_counts(admin, names)
        if len(present) == len(names) and all(present.values()):
            return present
        await asyncio.sleep(0.05)


def _configuration(connection: KafkaConnection, topics: Topics, name: str) -> dict[str, str]:
    limit = connection.settings.max_message_bytes
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(topics.retention_ms[name]),
        "segment.ms": str(SEGMENT_MS),
        "max.message.bytes": str(limit * DEAD_LETTER_FACTOR if name.endswith(DEAD_LETTERS_SUFFIX) else limit),
    }


def _check_inputs(topics: Topics, present: Mapping[str, int]) -> None:
    first, second = topics.inputs
    if present[first] != present[second]:
        msg = (
            f"{first} has {present[first]} partitions and {second} has {present[second]}: they must be equal, so that"
            " one process sees all events of a document. Add partitions to the smaller one while the agents are down."
        )
        raise ConfigurationError(msg)


async def _log_differences(admin: AIOKafkaAdminClient, wanted: Mapping[str, Mapping[str, str]]) -> None:
    resources = [ConfigResource(ConfigResourceType.TOPIC, n, dict.fromkeys(c)) for n, c in wanted.items()]
    for answer in await admin.describe_configs(resources):
        for resource in answer.to_object()["resources"]:
            name = resource["resource_name"]
            for entry in resource["config_entries"]:
                key, value = entry["config_names"], entry["config_value"]
                if wanted[name].get(key, value) != value:
                    _log.warning(
                        "topic.differs", topic=name, setting=key, is_=value, expected=wanted[name][key]
                    )


def _raise_for(code: int, what: str, harmless: type[Exception]) -> None:
    kind = for_code(code)
    if code and not issubclass(kind, harmless):
        if getattr(kind, "retriable", False):
            msg = f"{what}: {kind.__name__}"
            raise Transient(msg)
        msg = f"the brokers refuse: {what} ({kind.__name__})"
        raise ConfigurationError(msg)
