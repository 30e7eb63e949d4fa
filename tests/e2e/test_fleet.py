"""Agents write at once while the processes die in turn: every accepted memory is in the vault and in the index, once.

The short form runs in `make test`. The full one (10,000 writes of 32 agents, `kill -9` of the query service and of
each worker) is `make soak`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from hopline.client import AsyncHoplineClient
from indexers.domain.identity import Principal, TenantId
from indexers.errors import Transient
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.settings import OpenSearchSettings
from streams.rebuild import AGENTS
from tests.conftest import Stack
from tests.pipeline import Pipeline, running

pytestmark = pytest.mark.engines
TENANT: Final = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    agents: int
    writes: int
    #: Processes, killed one after the other while the agents write.
    killed: tuple[str, ...]
    idle_seconds: float


SHORT = Fleet(agents=8, writes=120, killed=("api",), idle_seconds=180)
FULL = Fleet(agents=32, writes=10_000, killed=("api", *AGENTS) * 2, idle_seconds=2_400)


@dataclass(slots=True, kw_only=True)
class Accepted:
    """What the service said of each write, by its number."""

    doc_ids: dict[int, str] = field(default_factory=dict)
    paths: dict[int, str] = field(default_factory=dict)
    _more: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def add(self, number: int, doc_id: str, path: str) -> None:
        """Said twice, it is the same memory."""
        async with self._more:
            assert self.doc_ids.setdefault(number, doc_id) == doc_id
            self.paths[number] = path
            self._more.notify_all()

    async def reached(self, count: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: len(self.doc_ids) >= count)


def word(number: int) -> str:
    return f"fleet{number:05d}q"


@pytest.mark.parametrize(
    "fleet", [pytest.param(SHORT, id="short"), pytest.param(FULL, id="full", marks=pytest.mark.soak)]
)
def test_every_accepted_write_is_there_once(fleet: Fleet, stack: Stack, tmp_path: Path) -> None:
    pipeline = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=tmp_path,
        vaults=[],
        settings={"HOPLINE_LIMITS__WRITES_PER_SECOND": "0", "HOPLINE_LIMITS__REQUESTS_PER_SECOND": "0"},
    )
    keys = write_agents(tmp_path, fleet.agents)
    with running(pipeline, *AGENTS, "api"):
        accepted = asyncio.run(write_all(pipeline, fleet, keys))
        pipeline.wait_idle(fleet.idle_seconds)
        assert sorted(accepted.doc_ids) == list(range(fleet.writes))
        assert len(set(accepted.doc_ids.values())) == fleet.writes
        check_files(tmp_path / "memories", accepted)
        asyncio.run(check_rows(pipeline, accepted))
        check_found(pipeline, keys, fleet, accepted)
        assert json.loads(pipeline.cli("dlq", "list", "--json", key=keys[0]).stdout)["letters"] == []
    check_logs(pipeline, keys)


def write_agents(folder: Path, count: int) -> list[str]:
    keys = [f"key-of-agent-{number:03d}-{os.urandom(16).hex()}" for number in range(count)]
    entries = [
        {"sha256": hashlib.sha256(key.encode()).hexdigest(), "tenant": TENANT, "agent": f"agent{number}"}
        for number, key in enumerate(keys)
    ]
    (folder / "keys.json").write_text(json.dumps({"keys": entries}))
    return keys


async def write_all(pipeline: Pipeline, fleet: Fleet, keys: list[str]) -> Accepted:
    accepted = Accepted()
    async with asyncio.TaskGroup() as group:
        group.create_task(strike(pipeline, fleet, accepted))
        for number, key in enumerate(keys):
            mine = range(number, fleet.writes, fleet.agents)
            group.create_task(write_some(pipeline, key, mine, accepted))
    return accepted


async def write_some(pipeline: Pipeline, key: str, numbers: range, accepted: Accepted) -> None:
    """One agent: what isn't answered is written again under the same idempotency key, until it is."""
    rnd = random.Random(numbers.start)  # noqa: S311 - reproducible scopes
    async with AsyncHoplineClient(pipeline.api_url, key, timeout_seconds=15) as client:
        for number in numbers:
            scope = rnd.choice(["personal", "shared"])
            fields = {"scope": scope, "title": f"Note {number}", "idempotency_key": f"n{number}"}
            for _ in range(2 if number % 50 == 0 else 1):
                await accepted.add(number, *await persistently(client, number, fields))


async def persistently(client: AsyncHoplineClient, number: int, fields: dict[str, Any]) -> tuple[str, str]:
    while True:
        try:
            written = await client.write(f"INC-{number % 40:04d} is {word(number)}, says agent.", **fields)
        except Transient:
            await asyncio.sleep(0.2)
        else:
            return written.doc_id, written.path


async def strike(pipeline: Pipeline, fleet: Fleet, accepted: Accepted) -> None:
    """`kill -9` of each, spread over the writes."""
    for number, name in enumerate(fleet.killed):
        due = fleet.writes * (number + 1) // (len(fleet.killed) + 1)
        await accepted.reached(due)
        await asyncio.to_thread(pipeline.kill, name)
        await asyncio.to_thread(pipeline.start, name)


def check_files(folder: Path, accepted: Accepted) -> None:
    """Each memory is one file, at the path that was told; nothing else is there."""
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}
    assert len(files) == len(accepted.paths)
    for number, path in accepted.paths.items():
        assert word(number) in files[Path(path).name]


async def check_rows(pipeline: Pipeline, accepted: Accepted) -> None:
    gate = gate_at(
        pipeline.opensearch_url, OpenSearchSettings(), prefix=pipeline.prefix, retry=RetryPolicy(attempts=5)
    )
    principal = Principal.pipeline(TenantId(TENANT))
    try:
        await gate.refresh()
        rows = gate.scan(principal, Index.DOCUMENTS, {"term": {"deleted": False}}, fields=("doc_id",))
        assert {row.row_id async for row in rows} == set(accepted.doc_ids.values())
        chunks = gate.scan(principal, Index.CHUNKS, {"match_all": {}}, fields=("doc_id",))
        counted = Counter([row.source["doc_id"] async for row in chunks])
        assert counted == dict.fromkeys(accepted.doc_ids.values(), 1)
    finally:
        await gate.close()


def check_found(pipeline: Pipeline, keys: list[str], fleet: Fleet, accepted: Accepted) -> None:
    """A sample by its word, by its author."""
    for number in random.Random(5).sample(range(fleet.writes), 20):  # noqa: S311 - reproducible sample
        key = keys[number % fleet.agents]
        assert pipeline.paths_for(word(number), key=key, parts=["keyword"]) == [accepted.paths[number]]


def check_logs(pipeline: Pipeline, keys: list[str]) -> None:
    """Each process wrote JSON, one line a batch and one a request, and in none of it what was written or asked."""
    logs = {name: pipeline.data_dir.joinpath(f"{name}.log").read_text() for name in (*AGENTS, "api")}
    said = re.compile("|".join([r"fleet\d{5}q", "says agent", *map(re.escape, keys)]))
    assert [(name, found.group()) for name, log in logs.items() if (found := said.search(log))] == []
    for name, log in logs.items():
        lines = [json.loads(line) for line in log.splitlines()]
        event, own_id = ("request.answered", "request_id") if name == "api" else ("batch.committed", "batch")
        ids = [line[own_id] for line in lines if line["event"] == event]
        assert ids, name
        assert len(set(ids)) == len(ids), name
        if name != "api":
            assert all(line["agent"] == name for line in lines if line["event"] == event)
