"""Seconds from a change on disk to the answer of the search: 50 edits, 25 renames, 25 deletions; p50, p95, max.

    python -m bench.freshness --kafka 127.0.0.1:PORT --opensearch http://127.0.0.1:PORT [--notes 300] [--rounds 50]

An edit counts when the new word is found and the old one is gone. Prints a table and writes bench/out/freshness.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests import corpus
from tests.pipeline import Pipeline, running, wait_for, write_keys

KEYWORD = ["keyword"]


def seconds_until(condition: Callable[[], bool]) -> float:
    return wait_for(condition, 60, "change visible")


def edited(pipeline: Pipeline, number: int) -> bool:
    gone = not pipeline.paths_for(f"vorrin{number:03d}q", parts=KEYWORD)
    return gone and pipeline.finds(f"tarvel{number:03d}q", [f"fresh-{number}.md"])()


def found_by_vector(pipeline: Pipeline, number: int) -> bool:
    return f"fresh-{number}.md" in pipeline.paths_for(f"new tarvel{number:03d}q", parts=["vector"])[:3]


def measure(pipeline: Pipeline, vault: Path, rounds: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {"edit": [], "edit_vector": [], "rename": [], "delete": []}
    for number in range(rounds):
        file = vault / f"fresh-{number}.md"
        file.write_text(f"# Fresh\n\nold vorrin{number:03d}q\n")
        seconds_until(pipeline.finds(f"vorrin{number:03d}q", [file.name]))
        time.sleep(0.3)
        start = time.monotonic()
        file.write_text(f"# Fresh\n\nnew tarvel{number:03d}q\n")
        seconds_until(partial(edited, pipeline, number))
        taken["edit"].append(time.monotonic() - start)
        seconds_until(partial(found_by_vector, pipeline, number))
        taken["edit_vector"].append(time.monotonic() - start)
        start = time.monotonic()
        if number % 2:
            file.unlink()
            seconds_until(pipeline.finds(f"tarvel{number:03d}q", []))
            taken["delete"].append(time.monotonic() - start)
        else:
            file.rename(vault / f"moved-{number}.md")
            seconds_until(pipeline.finds(f"tarvel{number:03d}q", [f"moved-{number}.md"]))
            taken["rename"].append(time.monotonic() - start)
    return taken


def summary(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=20)
    return {
        "n": len(values),
        "p50": round(statistics.median(values), 3),
        "p95": round(cuts[18], 3),
        "max": round(max(values), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--opensearch", required=True)
    parser.add_argument("--notes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        for number in range(options.notes):
            corpus.write(vault, number, options.notes)
        write_keys(Path(folder))
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=options.kafka,
            opensearch_url=options.opensearch,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault)}],
        )
        with running(pipeline, "ingest", "embed", "watch", "api"):
            pipeline.wait_idle(300)
            result = {
                kind: summary(values) for kind, values in measure(pipeline, vault, options.rounds).items()
            }
            pipeline.stop()
    print(json.dumps(result, indent=2))
    out = Path("bench/out")
    out.mkdir(parents=True, exist_ok=True)
    (out / "freshness.json").write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
