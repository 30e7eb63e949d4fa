"""A worker over a broker that is stopped, killed and restarted: it waits, goes on by itself, and loses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from streams.settings import KafkaSettings
from streams.topics import Topics
from tests.echo_worker import EchoTopics, EchoWorker, stopped_after, until, until_seen
from tests.engines import RunningEngine

#: A minute of waiting; `make test` restarts a broker in test_chaos.py and test_watcher_broker_away.py.
pytestmark = [pytest.mark.engines, pytest.mark.soak]


def numbered(count: int, *, start: int = 0) -> list[tuple[bytes, bytes]]:
    return [(f"k{n}".encode(), f"v{n:04}".encode()) for n in range(start, start + count)]


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_the_broker_goes_away_in_the_middle(
    broker: RunningEngine, prefix: str, tmp_path: Path, how: str
) -> None:
    settings = KafkaSettings(
        session_timeout_seconds=6, commit_interval_seconds=0.2, request_timeout_seconds=5
    )
    topics = EchoTopics(servers=broker.address, topics=Topics(prefix), settings=settings)
    await topics.create()
    await topics.send_keyed(numbered(200))
    worker = EchoWorker(
        topics=topics,
        folder=tmp_path,
        behaviour={"prepare_seconds": 0.1, "commit_seconds": 0.1},
        agent={"liveness_seconds": 5},
    ).start()
    with stopped_after(worker):
        await until_seen(lambda: len(worker.steps("committed")) >= 3, what="work under way")
        await asyncio.to_thread(broker.stop if how == "stop" else broker.kill)
        await asyncio.sleep(15)
        assert worker.process is not None
        assert worker.process.poll() is None, worker.raw_log()
        assert worker.get("/livez")[0] == 200, "a broker that is away must not restart the worker"
        await asyncio.to_thread(broker.start)
        await topics.send_keyed(numbered(100, start=200))

        async def drained() -> bool:
            assert worker.process is not None
            assert worker.process.poll() is None, worker.raw_log()
            return await topics.waiting() == 0

        await until(drained, seconds=60, what="an empty backlog")
        assert worker.terminate() == 0
    assert set(worker.done()) == {value.decode() for _, value in numbered(300)}
    await topics.delete()
