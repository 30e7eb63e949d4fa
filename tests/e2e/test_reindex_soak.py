"""Another model for a vault that is searched and written all the while: `make soak` only.

The example vault, and a labelled set named by `REINDEX_EVAL_SET` (a folder as evals/README.md has it). With
`REINDEX_REPORT` its figures are written to that file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hopline.evaluation.corpus import write_vault
from hopline.evaluation.sets import limited, read_set
from hopline.local.ports import free_ports
from streams.rebuild import AGENTS
from tests.conftest import Stack
from tests.model_folders import half_model
from tests.pipeline import REPOSITORY, Pipeline, running, wait_for, write_keys

pytestmark = [pytest.mark.engines, pytest.mark.soak]

RATE = 20
#: Asked at once: on a busy machine the rate falls, instead of a queue that grows.
ASKERS = 6
PASSAGES = 300


@dataclass(kw_only=True)
class Load:
    """Queries at a rate, whatever becomes of them, until it is over."""

    pipeline: Pipeline
    queries: list[str]
    seconds: list[float] = field(default_factory=list)
    models: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(ASKERS))
    began: float = 0.0

    def run(self) -> None:
        self.began = due = time.monotonic()
        number = 0
        with ThreadPoolExecutor(ASKERS) as askers:
            while not self.over.is_set():
                self.free.acquire()
                query = self.queries[number % len(self.queries)]
                askers.submit(self.ask, query, explain=number % 5 == 0)
                number += 1
                due = max(due + 1 / RATE, time.monotonic() - 1)
                time.sleep(max(0.0, due - time.monotonic()))

    def ask(self, query: str, *, explain: bool) -> None:
        begun = time.monotonic()
        try:
            status, answer = self.pipeline.request("/v1/search", {"query": query, "explain": explain})
            if status != 200:
                self.failures.append(f"{status}: {str(answer)[:300]}")
            elif explain:
                self.models[answer["trace"]["embedding_model"]] += 1
        except (OSError, KeyError) as fault:
            self.failures.append(repr(fault))
        finally:
            self.seconds.append(time.monotonic() - begun)
            self.free.release()


@dataclass(kw_only=True)
class World:
    name: str
    pipeline: Pipeline
    vault: Path
    queries: list[str]
    judged: Path | None
    model: Path
    second: subprocess.Popen[bytes] | None = None

    def cli(self, *words: str, seconds: float = 900) -> dict[str, Any]:
        done = self.pipeline.cli(*words, "--json", seconds=seconds)
        assert done.returncode == 0, f"{words}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}"
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def start_second(self) -> None:
        """The second group of embed workers, as the local stack starts it."""
        with (self.pipeline.data_dir / "second.log").open("ab") as log:
            self.second = subprocess.Popen(
                [sys.executable, "-m", "hopline", "agent", "embed", "--reindex"],
                env=self.pipeline.environment | {"HOPLINE_EMBED__HTTP_PORT": str(free_ports())},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill_second(self) -> None:
        assert self.second is not None
        self.second.kill()
        self.second.wait(10)

    def edit(self, word: str) -> None:
        """A note more, one changed, one gone; and their words found where they are."""
        (self.vault / f"{word}-new.md").write_text(f"# {word}\n\nA {word} stands in the yard.\n")
        (self.vault / "changing.md").write_text(f"# Changing\n\nNow it is {word}kind.\n")
        gone = self.vault / f"{word}-gone.md"
        gone.write_text(f"# Gone\n\n{word}gone\n")
        wait_for(self.pipeline.finds(f"{word}gone", [gone.name]), 90, "the note that will go")
        gone.unlink()
        wait_for(self.pipeline.finds(f"{word}kind", ["changing.md"]), 90, "the change")
        wait_for(self.pipeline.finds(f"{word}gone", []), 90, "the note that went")

    def settled(self) -> None:
        """Both groups of embed too."""
        self.pipeline.wait_idle(300)
        wait_for(
            lambda: all(not one["waiting_records"] for one in self.cli("reindex", "--status")["generations"]),
            300,
            "both groups level",
        )

    def verified(self) -> None:
        assert self.cli("verify")["clean"] is True


@pytest.fixture(params=["examples", "set"])
def world(request: pytest.FixtureRequest, stack: Stack, tmp_path: Path) -> Iterator[World]:
    vault, judged = tmp_path / "vault", None
    if request.param == "examples":
        judged = REPOSITORY / "evals" / "examples"
        shutil.copytree(REPOSITORY / "examples" / "vault", vault)
        queries = [question.text for question in read_set(judged).questions]
    else:
        named = os.environ.get("REINDEX_EVAL_SET")
        if not named:
            pytest.skip("REINDEX_EVAL_SET names no labelled set: its half of the soak is NOT run")
        found = read_set(Path(named))
        vault.mkdir()
        write_vault(found.passages[:PASSAGES], vault)
        queries = [question.text for question in limited(found.questions, 200)]
    pipeline = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=tmp_path,
        vaults=[{"name": "main", "path": str(vault)}],
    )
    write_keys(tmp_path)
    model = half_model(tmp_path / "half")
    with running(pipeline, *AGENTS, "watch", "api"):
        one = World(
            name=request.param, pipeline=pipeline, vault=vault, queries=queries, judged=judged, model=model
        )
        pipeline.wait_idle(600)
        try:
            yield one
        finally:
            if one.second is not None and one.second.poll() is None:
                one.second.kill()
                one.second.wait(10)


def test_a_model_is_swapped_back_and_forth_under_queries_and_writes(world: World) -> None:
    figures: dict[str, Any] = {"files": len(list(world.vault.rglob("*.md")))}
    world.verified()
    with under_load(world) as load:
        figures |= steps_of(world, load)
    figures |= told_of(load)
    if report := os.environ.get("REINDEX_REPORT"):
        with Path(report).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"vault": world.name, **figures}) + "\n")
    assert load.failures == []
    assert set(load.models) == {"e5-small-enko-int8", "e5-half-int8"}


def steps_of(world: World, load: Load) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as filling:
        filled = filling.submit(world.cli, "reindex", "--to", str(world.model))
        wait_for(lambda: world.cli("reindex", "--status")["state"] == "building", 120, "it has begun")
        world.start_second()
        world.edit("quorlbef")
        world.kill_second()
        world.edit("quorlmid")
        world.start_second()
        filled.result()
    assert world.cli("reindex", "--to", str(world.model))["complete"] is True
    figures["fill_seconds"] = round(time.monotonic() - begun, 1)
    world.settled()
    world.verified()
    figures["compared"] = world.cli("reindex", "--compare", "30")
    if world.judged is not None:
        figures["judged"] = world.cli("reindex", "--judged", str(world.judged))
    for step, model in (("--swap", "half"), ("--rollback", "enko"), ("--swap", "half")):
        assert world.cli("reindex", step) == {"changed": True}
        wait_for(lambda m=model: seen_since(load, m), 60, f"{model} answers")  # type: ignore[misc]
        world.edit(f"quorl{model}{len(load.seconds)}")
        world.settled()
        world.verified()
    finish(world)
    return figures


def finish(world: World) -> None:
    pipeline = world.pipeline
    pipeline.settings["HOPLINE_EMBEDDER__MODEL"] = str(world.model)
    assert world.cli("reindex", "--finish") == {"changed": True}
    # As a supervisor would: its generation is gone, so it ends and is started again.
    wait_for(lambda: pipeline.processes["embed"].poll() is not None, 60, "embed's own group has ended")
    pipeline.start("embed")
    assert world.second is not None
    world.second.wait(60)
    world.edit("quorlfin")
    pipeline.wait_idle(300)
    world.verified()
    assert world.cli("reindex", "--status")["state"] == "none"


def seen_since(load: Load, model: str) -> bool:
    before = Counter(load.models)
    time.sleep(0.5)
    return any(model in name for name in load.models - before)


@contextlib.contextmanager
def under_load(world: World) -> Iterator[Load]:
    load = Load(pipeline=world.pipeline, queries=world.queries)
    asking = threading.Thread(target=load.run)
    asking.start()
    try:
        yield load
    finally:
        load.over.set()
        asking.join()


def told_of(load: Load) -> dict[str, Any]:
    ordered = sorted(load.seconds)
    return {
        "queries": len(ordered),
        "queries_per_second": round(len(ordered) / (time.monotonic() - load.began), 1),
        "failed": len(load.failures),
        "median_ms": round(1_000 * ordered[len(ordered) // 2]),
        "p99_ms": round(1_000 * ordered[len(ordered) * 99 // 100]),
        "explained": dict(load.models),
    }
