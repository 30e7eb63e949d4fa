"""A memory written straight into the pipeline, for whoever runs it: no query service, no key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopline.settings import Settings
    from indexers.settings import VaultRoot


async def write_to_pipeline(
    settings: Settings, root: VaultRoot, content: str, fields: dict[str, Any]
) -> dict[str, str]:
    """Raises ConfigurationError where it is too large for a record. Returns once the broker has confirmed."""
    from indexers.errors import ConfigurationError
    from streams.connect import KafkaConnection
    from streams.events import encode
    from streams.memory import memory_write
    from streams.producer import EventProducer, OutgoingRecord
    from streams.topics import Topics
    from streams.versions import VersionClock

    event = memory_write(root.namespace, content, version=VersionClock().next(), **fields)
    record = OutgoingRecord(
        topic=Topics(settings.prefix).memory_writes, key=event.document.record_key, value=encode(event)
    )
    connection = KafkaConnection(servers=settings.kafka_servers, settings=settings.kafka)
    size, most = len(record.key or b"") + len(record.value or b""), connection.max_record_bytes(record.topic)
    if size > most:
        msg = (
            f"the memory is {size:,} bytes, and a record holds {most:,} (HOPLINE_KAFKA__MAX_MESSAGE_BYTES): "
            f"make it a file, `hopline write-file PATH < FILE`"
        )
        raise ConfigurationError(msg)
    async with EventProducer(settings.kafka, settings.kafka_servers) as producer:
        await producer.send_all([record])
    return {"event_id": event.event_id, "doc_id": event.document.doc_id, "path": event.path}
