"""The commit rule on a real broker: nothing is lost, and nothing is committed before it was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.echo_worker import EchoTopics, EchoWorker, until, until_seen

pytestmark = pytest.mark.engines

Start = Callable[..., EchoWorker]
VALUES = [f"v{n:03}".encode() for n in range(100)]
ALL = {value.decode() for value in VALUES}
#: Batches that may be prepared at once.
on_both = pytest.mark.parametrize("preparing", [1, 2])


async def all_committed(topics: EchoTopics, count: int = 100) -> None:
    async def reached() -> bool:
        return await topics.committed() == count

    await until(reached, what=f"{count} committed")


async def test_every_record_is_done_once_and_committed(echo_topics: EchoTopics, echo_worker: Start) -> None:
    await echo_topics.send(VALUES)
    worker = echo_worker()
    await all_committed(echo_topics)
    assert worker.terminate() == 0
    assert worker.done() == dict.fromkeys(ALL, 1)


@on_both
async def test_batches_overlap_as_far_as_said_and_end_in_order(
    echo_topics: EchoTopics, echo_worker: Start, preparing: int
) -> None:
    await echo_topics.send(VALUES)
    worker = echo_worker({"prepare_seconds": 0.1, "commit_seconds": 0.15, "preparing": preparing})
    await all_committed(echo_topics)
    worker.terminate()
    order = [values for line in worker.steps("committed") for values in line["values"]]
    assert order == sorted(ALL)
    in_stage = {"prepare": 0, "commit": 0}
    overlaps = most = 0
    for line in worker.steps():
        stage, change = {
            "prepare": ("prepare", 1),
            "prepared": ("prepare", -1),
            "commit": ("commit", 1),
            "committed": ("commit", -1),
        }[line["step"]]
        in_stage[stage] += change
        assert in_stage["commit"] <= 1, "two batches in the store"
        most = max(most, in_stage["prepare"])
        overlaps += all(in_stage.values())
    assert most == preparing
    assert overlaps > 0, "no batch was prepared while another was in the store"


async def test_the_first_records_of_a_burst_go_ahead_and_the_batches_behind_them_grow(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    await echo_topics.send(VALUES)
    worker = echo_worker({"first_records": 4}, batch_records=40)
    await all_committed(echo_topics)
    await asyncio.sleep(1.5)
    await echo_topics.send(VALUES)
    await all_committed(echo_topics, 200)
    worker.terminate()
    batches = [line["values"] for line in worker.steps("committed")]
    assert [value for batch in batches for value in batch] == sorted(ALL) * 2
    second = next(n for n in range(1, len(batches)) if batches[n][0] == min(ALL))
    for burst in (batches[:second], batches[second:]):
        # A batch is smaller where its records come in two fetches.
        assert len(burst[0]) <= 4
        assert all(len(batch) <= min(4 * 2**n, 40) for n, batch in enumerate(burst))
    assert max(map(len, batches)) > 8


@on_both
async def test_kill_9_in_the_store_brings_the_batch_again(
    echo_topics: EchoTopics, echo_worker: Start, preparing: int
) -> None:
    await echo_topics.send(VALUES)
    first = echo_worker({"hang_at": 4, "preparing": preparing})
    await until_seen(lambda: len(first.steps("prepared")) == 4 + preparing, what="the fourth batch")
    await all_committed(echo_topics, 30)
    first.kill()
    assert await echo_topics.committed() == 30
    second = echo_worker()
    await all_committed(echo_topics)
    second.terminate()
    assert second.done() == dict.fromkeys(ALL, 1)
    # Where it ends depends on what has arrived by then.
    hung, again = (second.steps("commit")[at]["values"][0] for at in (3, 4))
    assert again == hung, "not the same batch again"


async def test_a_bug_ends_the_worker_with_70_and_commits_nothing_of_its_batch(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    """C11 at the runtime's level: the write step raises, the process is started again."""
    await echo_topics.send(VALUES)
    first = echo_worker({"raise_at": 1})
    assert first.exit_code() == 70
    assert [line["error"] for line in first.logged("batch.failed")] == ["ValueError('a bug')"]
    assert await echo_topics.committed() == 0
    second = echo_worker()
    await all_committed(echo_topics)
    second.terminate()
    assert second.done() == dict.fromkeys(ALL, 1)


@on_both
async def test_sigterm_finishes_what_is_in_flight(
    echo_topics: EchoTopics, echo_worker: Start, preparing: int
) -> None:
    await echo_topics.send(VALUES)
    worker = echo_worker({"prepare_seconds": 0.3, "commit_seconds": 0.3, "preparing": preparing})
    await until_seen(lambda: len(worker.steps("committed")) >= 2, what="two batches")
    assert worker.terminate() == 0
    begun = {value for line in worker.steps("prepare") for value in line["values"]}
    assert worker.done() == dict.fromkeys(begun, 1)
    assert await echo_topics.committed() == len(begun) < 100


@on_both
async def test_sigterm_leaves_what_does_not_end_within_the_grace(
    echo_topics: EchoTopics, echo_worker: Start, preparing: int
) -> None:
    await echo_topics.send(VALUES)
    first = echo_worker({"hang_at": 4, "preparing": preparing}, stop_grace_seconds=1)
    await until_seen(lambda: len(first.steps("commit")) == 4, what="the fourth batch")
    assert first.terminate() == 0
    # How many a batch has depends on what the first polls brought.
    stored = first.done()
    assert 0 < len(stored) < len(ALL)
    assert await echo_topics.committed() == len(stored)
    second = echo_worker()
    await all_committed(echo_topics)
    second.terminate()
    assert second.done() == dict.fromkeys(ALL, 1)


async def test_a_second_sigterm_cuts_the_grace_short(echo_topics: EchoTopics, echo_worker: Start) -> None:
    await echo_topics.send(VALUES)
    worker = echo_worker({"hang_at": 1}, stop_grace_seconds=60)
    await until_seen(lambda: worker.steps("commit"), what="a batch in the store")
    assert worker.process is not None
    worker.process.terminate()
    await until_seen(lambda: worker.logged("worker.draining"), what="the drain")
    assert worker.terminate(10) == 0
    assert await echo_topics.committed() == 0


async def test_the_partition_is_held_while_the_store_is_away(
    echo_topics: EchoTopics, echo_worker: Start, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.touch()
    await echo_topics.send(VALUES)
    worker = echo_worker({"away_while": str(away)}, liveness_seconds=1)
    await until_seen(lambda: len(worker.steps("commit")) >= 5, what="five tries")
    assert await echo_topics.committed() == 0
    assert worker.get("/livez")[0] == 200, "a store that is away must not restart the worker"
    assert 'hopline_stream_held{dependency="batch"} 1.0' in worker.get("/metrics")[1]
    away.unlink()
    await all_committed(echo_topics)
    assert worker.terminate() == 0
    assert worker.done() == dict.fromkeys(ALL, 1)
    assert [line["dependency"] for line in worker.logged("batch.released")] == ["batch"]


async def test_sigterm_while_the_store_is_away(
    echo_topics: EchoTopics, echo_worker: Start, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.touch()
    await echo_topics.send(VALUES)
    worker = echo_worker({"away_while": str(away)}, stop_grace_seconds=1)
    await until_seen(lambda: len(worker.steps("commit")) >= 2, what="two tries")
    assert worker.terminate() == 0
    assert await echo_topics.committed() == 0
    assert worker.done() == {}


async def test_batches_are_cut_by_bytes(echo_topics: EchoTopics, echo_worker: Start) -> None:
    await echo_topics.send([b"a" * 50_000, b"b" * 50_000, b"c" * 50_000, b"d" * 90_000, b"e"])
    worker = echo_worker(batch_bytes=100_010)
    await all_committed(echo_topics, 5)
    worker.terminate()
    sizes = [[len(value) for value in line["values"]] for line in worker.steps("committed")]
    assert max(sum(size) for size in sizes) <= 100_010
    assert [size for batch in sizes for size in batch] == [50_000, 50_000, 50_000, 90_000, 1]


async def test_offsets_end_in_order_within_every_partition(
    echo_topics: EchoTopics, echo_worker: Start
) -> None:
    await echo_topics.send_keyed([(value, value) for value in VALUES])
    worker = echo_worker({"prepare_seconds": 0.02, "commit_seconds": 0.02})
    await all_committed(echo_topics)
    worker.terminate()
    places = [place.split(":") for line in worker.steps("committed") for place in line["places"]]
    for partition in range(4):
        offsets = [int(o) for _, p, o in places if int(p) == partition]
        assert all(b == a + 1 for a, b in pairwise(offsets))
