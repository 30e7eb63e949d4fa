"""Workers that come and go: nothing is lost, and one process holds both sides of a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.echo_worker import EchoTopics, EchoWorker, until, until_seen

pytestmark = pytest.mark.engines

Start = Callable[..., EchoWorker]


def numbered(count: int, *, start: int = 0) -> list[tuple[bytes, bytes]]:
    return [(f"k{n}".encode(), f"v{n:04}".encode()) for n in range(start, start + count)]


async def all_done(topics: EchoTopics, seconds: float = 60) -> None:
    async def reached() -> bool:
        return await topics.waiting() == 0

    await until(reached, seconds=seconds, what="an empty backlog")


def assignment(worker: EchoWorker) -> set[str]:
    """topic:partition of the latest assignment, without the prefix."""
    lines = worker.logged("worker.assigned")
    return {place.rpartition(".")[2] for place in lines[-1]["partitions"]} if lines else set()


def split_evenly(workers: Sequence[EchoWorker]) -> bool:
    held = [assignment(worker) for worker in workers]
    return all(held) and sum(len(part) for part in held) == 8 == len(set().union(*held))


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


async def test_a_stable_name_takes_over_at_once(echo_topics: EchoTopics, echo_worker: Start) -> None:
    """Static membership: the restarted worker needn't wait for the dead one's session to expire."""
    await echo_topics.send_keyed(numbered(50))
    first = echo_worker(instance_id="w1")
    await all_done(echo_topics)
    first.kill()
    second = echo_worker(instance_id="w1")
    await echo_topics.send_keyed(numbered(50, start=50))
    await all_done(echo_topics, seconds=5 + 4)
    assert second.terminate() == 0
    assert set(second.done()) == {value.decode() for _, value in numbered(100)}
