"""Everything dies in turn while notes stream in: afterwards nothing is missing, nothing is there twice.

The short form runs in `make test`. The full one (3,000 notes, ten `kill -9`, OpenSearch away for a minute) is
`make soak`. Broker and node keep what they had confirmed, and come back at the same address: the node is killed, too.
"""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from streams.rebuild import AGENTS
from tests import corpus
from tests.engines import EnginePair
from tests.pipeline import Pipeline, running, write_keys

pytestmark = pytest.mark.engines


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    notes: int
    kills: int
    outage_seconds: float
    idle_seconds: float


SHORT = Storm(notes=60, kills=4, outage_seconds=4, idle_seconds=180)
FULL = Storm(notes=3_000, kills=10, outage_seconds=60, idle_seconds=900)


@pytest.mark.parametrize(
    "storm", [pytest.param(SHORT, id="short"), pytest.param(FULL, id="full", marks=pytest.mark.soak)]
)
def test_nothing_is_lost_when_everything_dies(storm: Storm, engines: EnginePair, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    write(vault, 0, storm)
    pipeline = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=engines.kafka_servers,
        opensearch_url=engines.opensearch_url,
        data_dir=tmp_path,
        vaults=[{"name": "storm", "path": str(vault)}],
    )
    write_keys(tmp_path)
    with running(pipeline, *AGENTS, "watch", "api"):
        written = 1
        for step in range(storm.kills + 1):
            until = 1 + (storm.notes - 1) * (step + 1) // (storm.kills + 1)
            while written < until:
                write(vault, written, storm)
                written += 1
            time.sleep(1.0)
            if step < storm.kills:
                strike(pipeline, engines, storm, step)
        edit_and_delete_some(vault, storm)
        pipeline.wait_idle(storm.idle_seconds)
        check(pipeline, vault, storm)


def write(vault: Path, number: int, storm: Storm) -> None:
    """A note that names an incident, which others name too, and a service of its own."""
    names = (
        f"Incident INC-{number % 40:04d} hit {corpus.own_word(number)}-api, says Alice Novak of Northwind.\n"
    )
    file = vault / corpus.path(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(corpus.note(number, storm.notes) + names, encoding="utf-8")


def strike(pipeline: Pipeline, engines: EnginePair, storm: Storm, step: int) -> None:
    name = AGENTS[step % len(AGENTS)]
    pipeline.kill(name)
    if step == storm.kills // 3:
        engines.kafka.restart()
    if step == 2 * storm.kills // 3:
        engines.opensearch.kill()
        time.sleep(storm.outage_seconds)
        engines.opensearch.start()
    pipeline.start(name)


def edit_and_delete_some(vault: Path, storm: Storm) -> None:
    for number in range(0, storm.notes, 10):
        file = vault / corpus.path(number)
        file.write_text(
            file.read_text(encoding="utf-8").replace(corpus.own_word(number), f"edited{number:05d}q"),
            encoding="utf-8",
        )
    for number in range(5, storm.notes, 50):
        (vault / corpus.path(number)).unlink()


def check(pipeline: Pipeline, vault: Path, storm: Storm) -> None:
    """`verify` compares every row with the files (missing, stale, orphan, duplicate); a sample is searched as well."""
    report = pipeline.cli("verify", "--json", seconds=300)
    assert report.returncode == 0, report.stdout[-4_000:] + report.stderr[-2_000:]
    assert json.loads(pipeline.cli("dlq", "list", "--json").stdout)["letters"] == []
    sample = random.Random(3).sample(range(storm.notes), 30)  # noqa: S311 - reproducible sample
    for number in sample:
        deleted, edited = number % 50 == 5, number % 10 == 0
        found = pipeline.paths_for(corpus.own_word(number), parts=["keyword"])
        assert found == ([] if deleted or edited else [corpus.path(number)]), number
        if edited:
            assert pipeline.paths_for(f"edited{number:05d}q", parts=["keyword"]) == [corpus.path(number)]
    assert sum(1 for _ in vault.rglob("*.md")) == storm.notes - len(range(5, storm.notes, 50))
