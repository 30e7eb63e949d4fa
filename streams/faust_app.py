"""The one place that touches Faust: an App run as a library, its agent, and what to know before changing a line.

docs/explanation/faust.md holds the traps that were measured. In short: `noack_take` and our own acknowledgement are
the only way that keeps the commit rule; concurrency stays 1; no exception may leave the agent's body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import faust
from faust.types import EventT

from streams.assignor import EvenAssignor
from streams.batch import BatchSizes, Record, split_by_bytes
from streams.connect import KafkaConnection
from streams.context import AgentSpec
from streams.fetch import use_short_waits
from streams.pipeline import Pipeline
from streams.tracing import header_of

#: So long without a batch, the next records are a new burst: the first of them go ahead (`BatchSizes`).
QUIET_SECONDS: Final = 1.0
OnAssigned = Callable[[Sequence[tuple[str, int]]], None]


def build_app(
    spec: AgentSpec,
    feed: Pipeline[Any],
    on_assigned: OnAssigned,
    on_revoked: Callable[[], None],
    *,
    folder: str,
) -> faust.App:
    """An app with one agent that feeds the pipeline. Nothing is connected yet.

    `folder` must be there until the app has started: Faust makes empty folders in it and looks at them no more.
    """
    app = faust.App(**app_options(spec, folder))
    use_short_waits(app)
    # Both topics behind one channel: one stream, one order of acknowledgements.
    channel = app.topic(
        *spec.inputs,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        allow_empty=True,
    )

    async def agent(stream: Any) -> None:
        settings, sizes = spec.settings, spec.batch_sizes
        async for events in stream.noack_take(settings.batch_records, within=settings.batch_seconds):
            # A take itself may wait for `batch_seconds`, and is no quiet time.
            if feed.idle_seconds > QUIET_SECONDS + settings.batch_seconds:
                sizes.restart()
            await _feed(stream, events, feed, sizes, settings.batch_bytes)

    app.agent(channel, name=spec.group, concurrency=1)(agent)

    async def assigned(_app: object, /, partitions: Any = (), *_: object, **_unused: object) -> None:
        on_assigned(sorted((tp.topic, tp.partition) for tp in partitions if tp.topic in spec.inputs))

    async def revoked(_app: object, /, *_: object, **_unused: object) -> None:
        on_revoked()

    app.on_partitions_assigned.connect(assigned)
    app.on_partitions_revoked.connect(revoked)
    return app


def app_options(spec: AgentSpec, folder: str) -> dict[str, Any]:
    kafka = spec.kafka
    connection = KafkaConnection(servers=spec.servers, settings=kafka)
    return {
        "id": spec.group,
        "broker": [f"kafka://{server}" for server in spec.servers.split(",")],
        "broker_credentials": _credentials(connection),
        "broker_session_timeout": kafka.session_timeout_seconds,
        # Faust refuses a session that is longer than a request may take; 90 is its default.
        "broker_request_timeout": max(90.0, kafka.session_timeout_seconds),
        "broker_heartbeat_interval": min(3.0, kafka.session_timeout_seconds / 3),
        "broker_commit_interval": kafka.commit_interval_seconds,
        "consumer_auto_offset_reset": "earliest",
        "consumer_group_instance_id": member_name(spec),
        # Faust's own assignor, which keeps equal partition numbers of topics of equal width together: one process
        # must see all events of a document. With 0 here (and no tables) Faust takes a round robin over all
        # partitions instead, which tears them apart.
        "table_standby_replicas": 1,
        "PartitionAssignor": EvenAssignor,
        # Records wait in three places: what was fetched (1 MiB a partition), this queue, and the batches in work.
        # A queue of one batch is enough to never starve the stage; a queue of 4,096 (the default) of records of
        # 350 kB each would be 1.4 GB.
        "stream_buffer_maxsize": spec.settings.batch_records,
        # False: a batch may be held for hours while the store is away, and a stop or a rebalance must not wait for
        # it. Its price, a batch done twice at a rebalance, is paid by idempotent effects.
        "stream_wait_empty": False,
        "topic_replication_factor": kafka.replication_factor,
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "web_enabled": False,
        "datadir": folder,
    }


def member_name(spec: AgentSpec) -> str | None:
    """The worker's name in its group, for static membership.

    None, never "": an empty string counts as an id, and two workers would replace each other for ever. The topics are
    part of it: the broker gives a member that is back what it had, whatever it asks for now, and no rebalance would
    ever bring it a topic that only the new release reads.
    """
    name = spec.settings.instance_id
    topics = hashlib.blake2s("\n".join(sorted(spec.inputs)).encode(), digest_size=4).hexdigest()
    return None if name is None else f"{name}-{topics}"


def record_of(event: EventT[Any]) -> Record:
    message = event.message
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=event.key,
        value=event.value,
        timestamp=message.timestamp,
        trace=header_of(message.headers),
    )


async def _feed(
    stream: Any, events: Sequence[EventT[Any]], pipeline: Pipeline[Any], sizes: BatchSizes, max_bytes: int
) -> None:
    at = 0
    while at < len(events):
        wanted = events[at : at + sizes.next]
        sizes.taken(len(wanted))
        for records in split_by_bytes([record_of(event) for event in wanted], max_bytes):
            own = events[at : at + len(records)]
            at += len(records)
            await pipeline.feed(records, _acknowledgement(stream, own))


def _acknowledgement(stream: Any, events: Sequence[EventT[Any]]) -> Callable[[], Awaitable[None]]:
    async def acknowledge() -> None:
        for event in events:
            await stream.ack(event)

    return acknowledge


def _credentials(connection: KafkaConnection) -> Any:
    settings = connection.settings
    if settings.security_protocol == "SSL":
        return faust.SSLCredentials(connection.ssl_context())
    if settings.security_protocol.startswith("SASL"):
        return faust.SASLCredentials(
            username=settings.sasl_username,
            password=connection.password(),
            ssl_context=connection.ssl_context(),
            mechanism=settings.sasl_mechanism,
        )
    return None
