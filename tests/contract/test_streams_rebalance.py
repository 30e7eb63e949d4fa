"""Workers that come and go: nothing is lost, and one process holds both sides of a document."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import pytest

from streams.producer import EventProducer, OutgoingRecord
from tests.echo_worker import EchoTopics, EchoWorker, all_done, assignment, split_evenly, until_seen

pytestmark = pytest.mark.engines

Start = Callable[..., EchoWorker]
REBALANCES = "hopline_stream_rebalances_total"
PACE = {"prepare_seconds": 0.05, "commit_seconds": 0.05}


def numbered(count: int, *, start: int = 0) -> list[tuple[bytes, bytes]]:
    return [(f"k{n}".encode(), f"v{n:04}".encode()) for n in range(start, start + count)]


async def test_a_second_worker_joins_and_leaves_in_the_middle(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    first = echo_worker({"prepare_seconds": 0.1, "commit_seconds": 0.1})
    await until_seen(lambda: len(assignment(first)) == 8, what="the first worker's partitions")
    await echo_topics.send_keyed(numbered(400))
    await until_seen(lambda: len(first.steps("committed")) >= 3, what="work under way")
    second = echo_worker({"prepare_seconds": 0.1, "commit_seconds": 0.1})
    await until_seen(lambda: split_evenly([first, second]), what="a share for both")
    assert second.terminate() == 0
    await until_seen(lambda: len(assignment(first)) == 8, what="all back at the first worker")
    await all_done(echo_topics)
    assert first.terminate() == 0
    assert set(first.done()) == {value.decode() for _, value in numbered(400)}
    pids = {line["pid"] for line in first.steps("committed")}
    assert pids <= {first.pid, second.pid}


async def test_a_worker_killed_beside_another_loses_nothing(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    workers = [echo_worker({"prepare_seconds": 0.05, "commit_seconds": 0.05}) for _ in range(2)]
    await until_seen(lambda: split_evenly(workers), what="a share for both")
    await echo_topics.send_keyed(numbered(400))
    await until_seen(lambda: len(workers[0].steps("committed")) >= 4, what="work under way")
    workers[1].kill()
    await all_done(echo_topics)
    assert workers[0].terminate() == 0
    assert set(workers[0].done()) == {value.decode() for _, value in numbered(400)}


async def test_a_third_worker_gets_a_share_and_both_topics_of_a_number_stay_together(
    echo_worker: Start,
) -> None:
    """Faust's own assignor leaves it idle: two workers of two numbers each are within ceil(4 / 3). See faust_app."""
    workers = [echo_worker() for _ in range(2)]
    await until_seen(lambda: split_evenly(workers), what="a share for both")
    workers.append(echo_worker())
    await until_seen(lambda: split_evenly(workers), what="a share for all three")
    for worker in workers:
        numbers = {
            topic: {place.split(":")[1] for place in assignment(worker) if place.startswith(topic)}
            for topic in ("file-changes", "memory-writes")
        }
        assert numbers["file-changes"] == numbers["memory-writes"]
    assert {worker.terminate() for worker in workers} == {0}


async def test_restarts_of_named_workers_leave_their_neighbours_alone(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    """Static membership. A named worker that stops doesn't leave its group: back within the session timeout, it has
    its partitions at once, and no other member hears of it. So it is when it is killed."""
    echo_topics.settings = echo_topics.settings.model_copy(update={"session_timeout_seconds": 120.0})
    workers = {name: echo_worker(PACE, instance_id=name) for name in ("w1", "w2")}
    await until_seen(lambda: split_evenly(list(workers.values())), what="a share for both")
    enough = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        load = group.create_task(keep_sending(echo_topics, enough))
        for name, other, how in (("w1", "w2", signal.SIGTERM), ("w2", "w1", signal.SIGKILL)):
            held, before = assignment(workers[name]), workers[other].metric(REBALANCES)
            assert workers[name].end(how) in (0, -signal.SIGKILL)
            workers[name] = again = echo_worker(PACE, instance_id=name)
            await until_seen(again.is_ready, what=f"{name} back")
            assert assignment(again) == held
            assert (again.metric(REBALANCES), workers[other].metric(REBALANCES)) == (1, before)
        enough.set()
    await all_done(echo_topics)
    assert {worker.terminate() for worker in workers.values()} == {0}
    assert set(workers["w1"].done()) == {value.decode() for _, value in load.result()}


async def keep_sending(topics: EchoTopics, enough: asyncio.Event) -> list[tuple[bytes, bytes]]:
    sent: list[tuple[bytes, bytes]] = []
    async with EventProducer(topics.settings, topics.servers) as producer:
        while not enough.is_set():
            records = numbered(20, start=len(sent))
            await producer.send_all(
                [OutgoingRecord(topic=topics.topics.file_changes, key=k, value=v) for k, v in records]
            )
            sent += records
            await asyncio.sleep(0.1)
    return sent
