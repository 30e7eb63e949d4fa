"""Each worker is restarted in turn while notes and memories stream in: nothing is lost, no neighbour is disturbed.

The form over echo workers runs in `make test` (tests/contract/test_streams_rebalance.py); this one, over the real
agents, is part of `make soak`. Its figures: docs/reports/rolling-restart.md.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from hopline.client import HoplineClient
from indexers.errors import Transient
from streams.rebuild import AGENTS
from tests import corpus
from tests.conftest import Stack
from tests.pipeline import KEY, Pipeline, Place, running, wait_for, write_keys

pytestmark = [pytest.mark.engines, pytest.mark.soak]

WORKERS: Final = tuple(f"{agent}.{number}" for agent in AGENTS for number in (1, 2))
#: Between two notes, and between two memories.
PAUSE_SECONDS: Final = 0.5
#: A machine that is slower than that is not drowned: with so many records waiting, nothing is written until fewer do.
MOST_WAITING: Final = 200
#: Longer than any restart: a named worker that is back in time has its partitions still.
SESSION_SECONDS: Final = 120
REBALANCES: Final = "hopline_stream_rebalances_total"
_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Load:
    """What was written, and what the query service said that it had accepted: number → path."""

    vault: Path
    client: HoplineClient
    backlog: Callable[[], int]
    room: threading.Event = field(default_factory=threading.Event)
    enough: threading.Event = field(default_factory=threading.Event)
    notes: int = 0
    accepted: dict[int, str] = field(default_factory=dict)

    def keep_room(self) -> None:
        try:
            while not self.enough.wait(1):
                (self.room.set if self.backlog() < MOST_WAITING else self.room.clear)()
        finally:
            self.room.set()

    def write_notes(self) -> None:
        while self.room.wait() and not self.enough.wait(PAUSE_SECONDS):
            corpus.write(self.vault, self.notes, 1_000)
            self.notes += 1

    def write_memories(self) -> None:
        """What isn't answered is written again under the same key, until it is."""
        while self.room.wait() and not self.enough.wait(PAUSE_SECONDS):
            number = len(self.accepted)
            fields: dict[str, Any] = {
                "title": f"Memory {number}",
                "scope": "shared",
                "idempotency_key": f"m{number}",
            }
            with contextlib.suppress(Transient):
                self.accepted[number] = self.client.write(f"INC-{number} is {word(number)}.", **fields).path

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        tasks = (self.keep_room, self.write_notes, self.write_memories)
        with ThreadPoolExecutor(len(tasks)) as executor:
            begun: list[Future[None]] = [executor.submit(task) for task in tasks]
            try:
                yield
            finally:
                self.enough.set()
        for task in begun:
            task.result()


def word(number: int) -> str:
    return f"roll{number:05d}q"


def test_a_rolling_restart_of_all_workers_under_load(stack: Stack, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    pipeline = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=tmp_path,
        vaults=[{"name": "roll", "path": str(vault)}],
        settings={
            "HOPLINE_KAFKA__SESSION_TIMEOUT_SECONDS": str(SESSION_SECONDS),
            # Some seconds of a slow machine's work, so that the batch in flight ends within the grace.
            "HOPLINE_EMBED__BATCH_RECORDS": "16",
            "HOPLINE_EXTRACT__BATCH_RECORDS": "16",
        },
    )
    write_keys(tmp_path)
    with running(pipeline, *WORKERS, "watch", "api"), HoplineClient(pipeline.api_url, KEY) as client:
        wait_for(lambda: shared_evenly(pipeline), 120, "a share for each worker")
        load = Load(vault=vault, client=client, backlog=pipeline.backlog)
        with load.going_on():
            for name in (*WORKERS, "watch", "api"):
                restart(pipeline, name)
        began, waiting = time.monotonic(), pipeline.backlog()
        pipeline.wait_idle(1_800)
        seconds = time.monotonic() - began
        _log.info(
            "%d notes, %d memories; %d records waited at the end, done in %.1f s",
            load.notes,
            len(load.accepted),
            waiting,
            seconds,
        )
        check(pipeline, load)


def shared_evenly(pipeline: Pipeline) -> bool:
    held = [pipeline.metric(name, "hopline_stream_assigned_partitions") for name in WORKERS]
    return all(held[at] == held[at + 1] > 0 for at in range(0, len(held), 2))


def restart(pipeline: Pipeline, name: str) -> None:
    """SIGTERM, and the same again, as a supervisor does; then everybody else has the partitions that it had."""
    others = [other for other in WORKERS if other != name]
    before = {other: pipeline.metric(other, REBALANCES) for other in others}
    began = time.monotonic()
    pipeline.stop(name, seconds=120)  # a call of a model can't be cut short
    stopped = time.monotonic()
    pipeline.start(name, seconds=300)
    ready, waiting = time.monotonic(), pipeline.waiting()
    ends = {place: part.end for place, part in waiting.items()}
    caught_up = wait_for(
        lambda: is_done(pipeline, ends), 900, f"what waited after the restart of {name} done"
    )
    after = {other: pipeline.metric(other, REBALANCES) for other in others}
    figures = {
        "stop_seconds": round(stopped - began, 1),
        "start_seconds": round(ready - stopped, 1),
        "records_waiting": sum(part.lag for part in waiting.values()),
        "done_seconds": round(caught_up, 1),
        "rebalances_of_others": int(sum(after.values()) - sum(before.values())),
    }
    _log.info("%s: %s", name, figures)
    assert after == before
    if name in WORKERS:
        assert pipeline.metric(name, REBALANCES) == 1


def is_done(pipeline: Pipeline, ends: dict[Place, int]) -> bool:
    """All that had been sent by then is committed."""
    now = pipeline.waiting()
    return all((now[place].committed or 0) >= end for place, end in ends.items() if end)


def check(pipeline: Pipeline, load: Load) -> None:
    report = pipeline.cli("verify", "--json", seconds=300)
    assert report.returncode == 0, report.stdout[-4_000:] + report.stderr[-2_000:]
    assert json.loads(pipeline.cli("dlq", "list", "--json").stdout)["letters"] == []
    assert sum(pipeline.metric(name, "hopline_stream_dead_letters_total") for name in WORKERS) == 0
    assert load.notes
    assert load.accepted
    for number, path in load.accepted.items():
        assert pipeline.paths_for(word(number), parts=["keyword"]) == [path], number
    for number in range(load.notes):
        found = pipeline.paths_for(corpus.own_word(number), parts=["keyword"])
        assert found == [corpus.path(number)], number
