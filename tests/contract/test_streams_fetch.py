"""An agent with records to do isn't left waiting for more: what streams/fetch.py is for, on a real broker."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.echo_worker import EchoTopics, EchoWorker, until

pytestmark = pytest.mark.engines

#: Three of them are a fetch (1 MiB a partition), if they don't compress.
RECORDS = 48
RECORD_BYTES = 300_000
#: With two batches to a fetch, records lie longer than the 0.2 s after which the quiet partitions are asked alone.
BATCH_RECORDS = 4
PREPARE_SECONDS = 0.12


async def test_quiet_partitions_do_not_hold_up_a_busy_one(
    echo_topics: EchoTopics, echo_worker: Callable[..., EchoWorker]
) -> None:
    """With Faust's own waits the worker is idle three times as long as it works."""
    await echo_topics.send([os.urandom(RECORD_BYTES // 2).hex().encode() for _ in range(RECORDS)])
    worker = echo_worker({"prepare_seconds": PREPARE_SECONDS}, batch_records=BATCH_RECORDS)

    async def done() -> bool:
        return await echo_topics.committed() == RECORDS

    await until(done, what="all committed")
    worker.terminate()
    stage = [line for line in worker.steps() if line["step"] in ("prepare", "prepared")]
    spans = [(one["step"], other["at"] - one["at"]) for one, other in pairwise(stage)]
    worked = sum(seconds for step, seconds in spans if step == "prepare")
    idle = sum(seconds for step, seconds in spans if step == "prepared")

    assert idle < worked
