"""Topics, the producer and the health server, on a real broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from indexers.errors import ConfigurationError, HoplineError, Transient
from indexers.opensearch.retry import RetryPolicy
from streams.admin import ensure_topics, topic_widths
from streams.lag import LagReader, lag
from streams.producer import EventProducer, OutgoingRecord, RecordTooLarge
from streams.settings import KafkaSettings
from streams.topics import Topics
from tests.conftest import Stack
from tests.echo_worker import EchoTopics, EchoWorker, stopped_after, until, until_seen

pytestmark = pytest.mark.engines

Start = Callable[..., EchoWorker]


async def shown(topics: EchoTopics, *names: str) -> None:
    """A topic shows in the metadata a moment after the broker said that it was made."""

    async def all_there() -> bool:
        return len(await topic_widths(topics.settings, topics.servers, names)) == len(names)

    await until(all_there, what="the topics")


async def test_topics_are_made_once(echo_topics: EchoTopics) -> None:
    await echo_topics.create()
    names = list(echo_topics.topics.retention_ms)
    assert await topic_widths(echo_topics.settings, echo_topics.servers, names) == dict.fromkeys(names, 4)


async def test_an_input_topic_of_another_width_is_refused(stack: Stack, prefix: str) -> None:
    topics = EchoTopics(servers=stack.kafka_servers, topics=Topics(prefix), settings=KafkaSettings())
    names = topics.topics.inputs
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.kafka_servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(names[0], 3, 1), NewTopic(names[1], 2, 1)])
        await shown(topics, *names)
        with pytest.raises(ConfigurationError, match=r"has 3 partitions and .* has 2"):
            await topics.create()
    finally:
        await admin.close()
        await topics.delete()


async def test_a_missing_input_topic_gets_the_width_of_its_partner(stack: Stack, prefix: str) -> None:
    topics = EchoTopics(servers=stack.kafka_servers, topics=Topics(prefix), settings=KafkaSettings())
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.kafka_servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topics.topics.file_changes, 3, 1)])
        await shown(topics, topics.topics.file_changes)
        await topics.create()
        widths = await topic_widths(topics.settings, topics.servers, topics.topics.inputs)
        assert widths == dict.fromkeys(topics.topics.inputs, 3)
    finally:
        await admin.close()
        await topics.delete()


async def test_equal_keys_have_one_partition_number_in_both_inputs(echo_topics: EchoTopics) -> None:
    for n in range(8):
        for topic in echo_topics.topics.inputs:
            await echo_topics.send_keyed([(f"T1/a/shared/{n}.md".encode(), b"v")], topic=topic)
    ends: dict[str, list[int]] = {}
    for part in await echo_topics.lag():
        ends.setdefault(part.topic.rpartition(".")[2], []).append(part.end)
    assert ends["file-changes"] == ends["memory-writes"]
    assert sum(ends["file-changes"]) == 8


async def test_the_largest_record_goes_and_a_larger_one_is_told_apart(echo_topics: EchoTopics) -> None:
    largest = echo_topics.settings.max_message_bytes - 512
    topic = echo_topics.topics.file_changes
    async with EventProducer(echo_topics.settings, echo_topics.servers) as producer:
        await producer.send_all([OutgoingRecord(topic=topic, key=None, value=b"x" * largest)])
        with pytest.raises(RecordTooLarge, match="by reference"):
            await producer.send_all(
                [
                    OutgoingRecord(topic=topic, key=b"k", value=b"small"),
                    OutgoingRecord(topic=topic, key=None, value=b"x" * (largest + 1)),
                ]
            )
    assert sum(part.end for part in await echo_topics.lag()) == 1, "nothing of the refused call was sent"


async def test_no_broker_is_transient_and_quick() -> None:
    settings = KafkaSettings(request_timeout_seconds=2)
    nowhere = "127.0.0.1:1"
    async with asyncio.timeout(20):
        with pytest.raises(Transient):
            await EventProducer(settings, nowhere).send_all([OutgoingRecord(topic="t", key=None, value=b"")])
        with pytest.raises(Transient):
            await ensure_topics(settings, nowhere, Topics("t"))
        with pytest.raises(Transient):
            await lag(settings, nowhere, "g", ["t"])


async def test_a_missing_topic_is_said_and_not_made(stack: Stack, prefix: str) -> None:
    async with EventProducer(KafkaSettings(request_timeout_seconds=2), stack.kafka_servers) as producer:
        with pytest.raises(HoplineError):
            await producer.send_all([OutgoingRecord(topic=f"{prefix}.missing", key=None, value=b"")])


async def test_a_worker_tells_how_it_is(echo_worker: Start) -> None:
    worker = echo_worker()
    await until_seen(lambda: worker.logged("worker.assigned"), what="the assignment")
    status, body = worker.get("/readyz")
    assert (status, json.loads(body)) == (
        200,
        {"ok": True, "reason": "ready", "conditions": {"assignment": True, "opensearch": True}},
    )
    status, body = worker.get("/livez")
    assert (status, json.loads(body)["ok"]) == (200, True)
    status, body = worker.get("/metrics")
    families = {family.name for family in text_string_to_metric_families(body)}
    assert {"hopline_stream_lag_records", "hopline_stream_commit_progress_timestamp_seconds"} <= families
    assert not [name for name in families if name.startswith("faust")]
    assert worker.terminate() == 0


async def test_a_worker_without_a_broker_lives_waits_and_stops(tmp_path: Path) -> None:
    settings = KafkaSettings(request_timeout_seconds=1)
    nowhere = EchoTopics(servers="127.0.0.1:1", topics=Topics("t"), settings=settings)
    worker = EchoWorker(topics=nowhere, folder=tmp_path).start()
    with stopped_after(worker):
        await until_seen(lambda: worker.logged("batch.held"), what="the first try")
        assert worker.get("/livez")[0] == 200
        status, body = worker.get("/readyz")
        assert (status, json.loads(body)["reason"]) == (503, "not yet: assignment, opensearch")
        assert worker.terminate(5) == 0


async def test_a_client_that_does_not_close_is_given_up(
    echo_topics: EchoTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[AIOKafkaConsumer] = []

    async def never(consumer: AIOKafkaConsumer) -> None:
        left.append(consumer)
        await asyncio.Event().wait()

    settings = KafkaSettings(request_timeout_seconds=2)
    reader = LagReader(settings, echo_topics.servers, "g")
    policy = RetryPolicy(attempts=10)
    assert len(await policy.call(lambda: reader.read([echo_topics.topics.documents]))) == 4
    stop = AIOKafkaConsumer.stop
    monkeypatch.setattr(AIOKafkaConsumer, "stop", never)
    try:
        async with asyncio.timeout(10):
            await reader.close()
    finally:
        await stop(left[0])


async def test_a_running_worker_leaves_no_folder_to_clean_up_after_it(
    echo_worker: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    worker = echo_worker()
    await until_seen(lambda: worker.logged("worker.assigned"), what="the assignment")
    await until_seen(lambda: not list(folder.iterdir()), what="an empty folder")
