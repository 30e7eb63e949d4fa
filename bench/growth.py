"""How the default search's p95 grows from a small vault to a large one: filled once, measured as often as wanted.

    python -m bench.growth fill    --folder F [--notes 10000 200000] [--kafka HOST:PORT --opensearch URL]
    python -m bench.growth measure --folder F [--notes 10000 200000] [--queries 1000] [...]

`fill` (bench/grown.py) takes half an hour and more. It leaves the vaults below F and the rows in the engine: in the one
that was named, or in one whose data lie below F too, which each step starts and stops. A number of notes that F has
already is left as it is.

`measure` asks both vaults in turns, each by a service of its own over the same node, one query at a time: default
requests, none asked twice. Texts, links and vectors are invented; what grows with a vault and what doesn't is said in
bench/notes.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.cleaning import open_gate
from bench.engines import Addresses, add_arguments, engines
from bench.grown import Corpus, grow_index
from bench.notes import query
from bench.query import NAMESPACE, PRINCIPAL
from bench.query_sides import WARM_UP, Rig, Service, summary
from bench.report import Report
from bench.settling import shape
from indexers.embedders.factory import load_embedder
from indexers.opensearch.retry import RetryPolicy
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from tests.pipeline import Pipeline, running, write_keys

TARGET: Final = 2.0
#: Where a number of notes is said to be filled.
FILLED: Final = "filled.json"
#: Of the node that `fill` starts: merging graphs of vectors wants room.
FILL_HEAP_MB: Final = 3_072
RESAMPLES: Final = 2_000


def fill(folder: Path, addresses: Addresses, counts: Sequence[int], embedder: Embedder) -> None:
    for count in counts:
        corpus = _corpus(folder, addresses, count)
        place = corpus.pipeline.data_dir / FILLED
        if place.exists():
            continue
        start = time.monotonic()
        asyncio.run(_fresh(corpus.pipeline, embedder))
        chunks = grow_index(corpus, embedder)
        write_keys(place.parent)
        figures = {
            "notes": count,
            "chunks": chunks,
            "seconds": round(time.monotonic() - start),
            "indices": shape(corpus.pipeline),
        }
        place.write_text(json.dumps(figures, indent=1))
        print(json.dumps(figures), flush=True)


def measure(folder: Path, addresses: Addresses, counts: Sequence[int], queries: int) -> dict[str, Any]:
    small, large = counts
    pipelines = {count: _corpus(folder, addresses, count).pipeline for count in counts}
    embedder = load_embedder(EmbedderSettings())
    with contextlib.ExitStack() as stack:
        services: dict[int, Service] = {}
        for count, pipeline in pipelines.items():
            if not (pipeline.data_dir / FILLED).exists():
                raise SystemExit(f"{count} notes were never filled into {folder}")
            stack.enter_context(running(pipeline, "api"))
            rig = Rig(pipeline=pipeline, principal=PRINCIPAL, embedder=embedder)
            services[count] = Service(rig, "graph", query=partial(query, count=count))
        taken, steps = _in_turns(services, queries)
        for pipeline in pipelines.values():
            pipeline.stop()
    ratio = _p95(taken[large]) / _p95(taken[small])
    return {
        "holds": ratio <= TARGET,
        "target": TARGET,
        "ratio_p95": round(ratio, 3),
        "ratio_p95_interval_95": _interval(taken[large], taken[small]),
        "queries": queries,
        "sides": {
            str(count): {
                "service": summary(taken[count]),
                "service_steps_mean_ms": steps[count],
                "indices": shape(pipelines[count]),
            }
            for count in counts
        },
        "load_average": os.getloadavg()[0],
    }


def _corpus(folder: Path, addresses: Addresses, count: int) -> Corpus:
    data_dir = folder / str(count)
    vault = data_dir / "vault"
    vault.mkdir(parents=True, exist_ok=True)
    pipeline = Pipeline(
        prefix=f"growth{count}",
        kafka_servers=addresses.kafka_servers,
        opensearch_url=addresses.opensearch_url,
        data_dir=data_dir,
        vaults=[{"name": "bench", "path": str(vault)}],
    )
    return Corpus(pipeline=pipeline, vault=vault, count=count, namespace=NAMESPACE)


async def _fresh(pipeline: Pipeline, embedder: Embedder) -> None:
    gate = open_gate(pipeline, RetryPolicy())
    try:
        await gate.drop_indices()
        await gate.ensure_indices(
            dimension=embedder.dimension, pair_id=embedder.pair_id, cosine_floor=embedder.cosine_floor
        )
    finally:
        await gate.close()


def _in_turns(
    services: Mapping[int, Service], queries: int
) -> tuple[dict[int, list[float]], dict[int, dict[str, float]]]:
    """Milliseconds of each side after the warm-up, and the means of the services' steps."""
    taken: dict[int, list[float]] = {count: [] for count in services}
    sums: dict[int, dict[str, float]] = {}
    for number in range(WARM_UP + queries):
        if number == WARM_UP:
            sums = {count: service.step_sums() for count, service in services.items()}
        for count, service in list(services.items())[:: 1 if number % 2 else -1]:
            spent = service(number, None)
            if number >= WARM_UP:
                taken[count].append(spent)
    means = {
        count: service.step_means(since=sums[count], searches=queries) for count, service in services.items()
    }
    return taken, means


def _p95(milliseconds: Sequence[float]) -> float:
    return summary(milliseconds)["p95_ms"]


def _interval(large: Sequence[float], small: Sequence[float]) -> list[float]:
    """Of the ratio of p95s, by bootstrap: queries drawn again, the same for both sides."""
    rnd = np.random.default_rng(0)
    drawn = rnd.integers(0, len(large), (RESAMPLES, len(large)))
    p95 = [np.percentile(np.asarray(side)[drawn], 95, axis=1) for side in (large, small)]
    return [round(float(value), 3) for value in np.percentile(p95[0] / p95[1], [2.5, 97.5])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["fill", "measure"])
    parser.add_argument("--folder", type=Path, required=True, help="where the vaults are kept")
    parser.add_argument("--notes", type=int, nargs=2, default=[10_000, 200_000], metavar=("SMALL", "LARGE"))
    parser.add_argument("--queries", type=int, default=1_000)
    add_arguments(parser)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    heap_mb = FILL_HEAP_MB if arguments.step == "fill" else None
    with engines(arguments, folder=folder / "engines", heap_mb=heap_mb) as addresses:
        if arguments.step == "fill":
            fill(folder, addresses, arguments.notes, load_embedder(EmbedderSettings()))
            return
        figures = measure(folder, addresses, arguments.notes, arguments.queries)
    Report(name="growth", figures=figures).finish()


if __name__ == "__main__":
    main()
