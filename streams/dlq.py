"""Dead letters: parked with all that a replay needs, listed to the end of the log, sent again on request."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid5

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from indexers.domain.identity import ID_NAMESPACE, LABEL_PATTERN
from indexers.errors import ConfigurationError, PoisonRecord
from streams.admin import topic_widths
from streams.batch import Poisoned, Record
from streams.connect import KafkaConnection, close_client, kafka_faults
from streams.events import DeadLetter, decode, encode, now_iso
from streams.metrics import StreamMetrics
from streams.producer import EventProducer, OutgoingRecord
from streams.settings import KafkaSettings
from streams.topics import Topics
from streams.versions import is_possible

#: A deletion is remembered for 45 days; a letter of 30 days can't bring back what was deleted meanwhile.
REPLAY_DAYS: Final = 30
_TOO_OLD: Final = f"over {REPLAY_DAYS} days a deletion since then could be undone"
_REASON_CHARS: Final = 2_000
_PORTION: Final = 200
_PORTION_BYTES: Final = 8_000_000
_STALLED_SECONDS: Final = 15.0


class DeadLetters:
    """Parks records. `park` returns when the brokers have confirmed the letters: the offset may be acknowledged."""

    def __init__(self, producer: EventProducer, topic: str, *, agent: str, metrics: StreamMetrics) -> None:
        self._producer = producer
        self._topic = topic
        self._agent = agent
        self._metrics = metrics

    async def park(self, poisoned: Sequence[Poisoned]) -> None:
        """Raises Transient; parking the same record again makes a letter of the same id."""
        if not poisoned:
            return
        await self._producer.send_all(
            [
                OutgoingRecord(
                    topic=self._topic, key=p.record.key, value=encode(letter_of(p, agent=self._agent))
                )
                for p in poisoned
            ]
        )
        for p in poisoned:
            self._metrics.parked(p.error.error_class)


def letter_of(poisoned: Poisoned, *, agent: str) -> DeadLetter:
    record, error = poisoned.record, poisoned.error
    place = f"{agent}\x1f{record.topic}\x1f{record.partition}\x1f{record.offset}\x1f{record.timestamp}"
    return DeadLetter(
        dead_letter_id=str(uuid5(ID_NAMESPACE, f"dead-letter\x1f{place}")),
        agent=agent,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        error_class=error.error_class,
        reason=error.reason[:_REASON_CHARS],
        failed_at=now_iso(),
        tenant_id=tenant_of(record),
    )


def tenant_of(record: Record) -> str | None:
    """For the filter of `hopline dlq list`: what the value claims, else the first part of the key."""
    try:
        return msgspec.json.decode(record.value or b"", type=_Owner).tenant_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        first, slash, _ = (record.key or b"").partition(b"/")
        name = first.decode(errors="replace")
        return name if slash and re.fullmatch(LABEL_PATTERN, name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Which letters are meant; what is None is not asked for."""

    tenant_id: str | None = None
    agent: str | None = None
    error_class: str | None = None
    ids: frozenset[str] | None = None

    def takes(self, letter: DeadLetter) -> bool:
        return (
            self.tenant_id in (None, letter.tenant_id)
            and self.agent in (None, letter.agent)
            and self.error_class in (None, letter.error_class)
            and (self.ids is None or letter.dead_letter_id in self.ids)
        )


async def read_letters(
    settings: KafkaSettings, servers: str, topics: Topics, wanted: LetterFilter
) -> AsyncIterator[DeadLetter]:
    """Every kept letter up to the end of the log as it was at the call, oldest first within a partition.

    The same record parked twice (after a crash) is given once. Bytes that are no letter are passed over: whoever
    writes to this topic by hand must not break the list. Raises Transient where the brokers stop answering.
    """
    connection = KafkaConnection(servers=servers, settings=settings)
    seen: set[str] = set()
    async for value in _values_to_end(connection, topics.dead_letters):
        try:
            letter = decode(value, DeadLetter)
        except PoisonRecord:
            continue
        if wanted.takes(letter) and letter.dead_letter_id not in seen:
            seen.add(letter.dead_letter_id)
            yield letter


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay did; `refused`: letter id and why."""

    sent: int = 0
    refused: tuple[tuple[str, str], ...] = ()


async def replay(
    letters: AsyncIterable[DeadLetter],
    *,
    producer: EventProducer,
    topics: Topics,
    now: datetime | None = None,
    on_sent: Callable[[int], None] = lambda _: None,
) -> Replayed:
    """Send the original key and bytes to the original topic. Repeating it is harmless: readers are idempotent.

    Refused, with the reason: events over 30 days old, and topics that no agent reads. `on_sent` gets the number of
    letters sent so far, after each confirmed portion.
    """
    today = datetime.now(UTC) if now is None else now
    sent = 0
    refused: list[tuple[str, str]] = []
    portion: list[OutgoingRecord] = []
    async for letter in letters:
        why = refusal(letter, topics=topics, now=today)
        if why is not None:
            refused.append((letter.dead_letter_id, why))
            continue
        portion.append(OutgoingRecord(topic=letter.topic, key=letter.key, value=letter.value))
        if sum(len(record.value or b"") for record in portion) >= _PORTION_BYTES or len(portion) >= _PORTION:
            await producer.send_all(portion)
            sent += len(portion)
            on_sent(sent)
            portion.clear()
    if portion:
        await producer.send_all(portion)
    return Replayed(sent=sent + len(portion), refused=tuple(refused))


def refusal(letter: DeadLetter, *, topics: Topics, now: datetime) -> str | None:
    """Why this letter may not be replayed; None: it may.

    A replay that fails is a letter with a new time, so what counts is the event's own: its version, drawn once.
    Only bytes without one (no agent can do anything with them) are as old as their letter.
    """
    if letter.topic == topics.dead_letters or letter.topic not in topics.retention_ms:
        return f"{letter.topic} is not read by any agent of this installation"
    try:
        age = now - datetime.fromisoformat(letter.failed_at)
    except (ValueError, TypeError):
        return f"failed_at {letter.failed_at!r} is no time with a zone"
    if age > timedelta(days=REPLAY_DAYS):
        return f"failed {age.days} days ago: {_TOO_OLD}"
    drawn = _version_of(letter)
    event_age = timedelta() if drawn is None else now - datetime.fromtimestamp(drawn / 1_000_000, tz=UTC)
    if event_age > timedelta(days=REPLAY_DAYS):
        return f"its event is {event_age.days} days old: {_TOO_OLD}"
    return None


def _version_of(letter: DeadLetter) -> int | None:
    try:
        version = msgspec.json.decode(letter.value or b"", type=_Versioned).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return version if version is not None and is_possible(version) else None


async def _values_to_end(connection: KafkaConnection, topic: str) -> AsyncIterator[bytes | None]:
    width = (await topic_widths(connection.settings, connection.servers, [topic])).get(topic)
    if width is None:
        msg = f"there is no topic {topic}: check the prefix setting, or start the pipeline once"
        raise ConfigurationError(msg)
    consumer = AIOKafkaConsumer(**connection.client_options(), auto_offset_reset="earliest")
    seconds = connection.settings.request_timeout_seconds
    with kafka_faults("reading dead letters"):
        try:
            await asyncio.wait_for(consumer.start(), seconds)
            ends = await _ends(consumer, [TopicPartition(topic, p) for p in range(width)])
            while ends:
                records = await _next_records(consumer, list(ends))
                for partition, batch in records.items():
                    for record in batch:
                        if record.offset < ends[partition]:
                            yield record.value
                ends = {p: end for p, end in ends.items() if await consumer.position(p) < end}
                consumer.pause(*(p for p in consumer.assignment() if p not in ends))
        finally:
            await close_client(consumer.stop, seconds=seconds)


async def _ends(
    consumer: AIOKafkaConsumer, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """End offsets of the partitions that hold anything; the consumer is set to their start."""
    starts = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    kept = {p: ends[p] for p in partitions if starts[p] < ends[p]}
    consumer.assign(list(kept))
    for p in kept:
        consumer.seek(p, starts[p])
    return kept


async def _next_records(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> Any:
    async with asyncio.timeout(_STALLED_SECONDS):
        while not (records := await consumer.getmany(*partitions, timeout_ms=500, max_records=500)):
            pass
    return records


class _Owner(msgspec.Struct):
    tenant_id: str | None = None


class _Versioned(msgspec.Struct):
    version: int | None = None
