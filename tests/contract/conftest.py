"""Fixtures of the contract suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.settings import KafkaSettings
from streams.topics import Topics
from tests.conftest import Stack
from tests.echo_worker import EchoTopics, EchoWorker, stopped_after


@pytest.fixture
async def echo_topics(stack: Stack, prefix: str) -> AsyncIterator[EchoTopics]:
    """Topics of this test's own, four partitions each; deleted afterwards."""
    settings = KafkaSettings(session_timeout_seconds=6, commit_interval_seconds=0.2)
    topics = EchoTopics(servers=stack.kafka_servers, topics=Topics(prefix), settings=settings)
    await topics.create()
    yield topics
    await topics.delete()


@pytest.fixture
def echo_worker(echo_topics: EchoTopics, tmp_path: Path) -> Iterator[Callable[..., EchoWorker]]:
    """Starts workers; ends those that still run after the test."""
    workers: list[EchoWorker] = []

    def start(behaviour: dict[str, Any] | None = None, **agent: Any) -> EchoWorker:
        worker = EchoWorker(topics=echo_topics, folder=tmp_path, behaviour=behaviour or {}, agent=agent)
        workers.append(worker)
        return worker.start()

    try:
        yield start
    finally:
        with stopped_after(*workers):
            pass
