"""Seconds from an agent's write to what can be had of it, at a steady rate: the file, found by word, vector and entity.

    python -m bench.memories [--writes 1200] [--rate 20] [--agents 8] [--warm-up 300] [--kafka … --opensearch URL]

Agents write through the client at `--rate` writes a second in all, each with a word, an incident and a sentence of its
own. One write in `--sample` is followed by searches until it is found; the others are load, and so are the searches:
if every second write were followed, they would be most of it. The clock of a write starts when it is sent. Before that
come `--warm-up` seconds of the same: for minutes after its start the node's compiler takes a third of a core at this
rate, and all that waits for the CPU waits longer. Ends with 1 where a p95 is over its target: word 1.5 s, vector 2.5 s,
entity 6 s.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.engines import add_arguments, engines
from bench.report import Report
from hopline.client import AsyncHoplineClient
from streams.rebuild import AGENTS
from tests.pipeline import Pipeline, running

#: p95, seconds.
TARGETS: Final = {"word": 1.5, "vector": 2.5, "entity": 6.0}
PATIENCE_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.1
PLACES: Final = ("Kraków", "Busan", "Lisbon", "Oslo", "Quito", "Nairobi", "Hanoi", "Lima")
THINGS: Final = ("ledger", "gateway", "scheduler", "importer", "mailer", "index", "queue", "cache")


@dataclass(slots=True, kw_only=True)
class Times:
    """Seconds by what was had."""

    of: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, values in self.of.items():
            cuts = statistics.quantiles(values, n=100, method="inclusive")
            found[f"{name}.n"] = len(values)
            for percent in (50, 75, 90, 95):
                found[f"{name}.p{percent}"] = round(cuts[percent - 1], 3)
            found[f"{name}.max"] = round(max(values), 3)
        return found


def memory(number: int) -> dict[str, Any]:
    """Text and what it is found by: a word, an incident (`INC-…`) and a sentence that says what no other says."""
    place, thing = PLACES[number % 8], THINGS[number // 8 % 8]
    sentence = f"The {thing} of {place} stopped after delivery {number} and Mirela Voss restarted it by hand."
    return {
        "content": f"{sentence} See INC-{100_000 + number}, marker memo{number:06d}q.",
        "title": f"{thing} {number}",
        "scope": "shared",
    }


async def follow(
    client: AsyncHoplineClient, pipeline: Pipeline, number: int, sent: float, path: str, times: Times
) -> None:
    file = pipeline.data_dir / "memories"

    async def on_disk() -> bool:
        return any(candidate.is_file() for candidate in file.glob(f"*/*/*/{path}"))

    async def by_word() -> bool:
        page = await client.search(f"memo{number:06d}q", parts=["keyword"], page_size=3)
        return [hit.path for hit in page.hits] == [path]

    async def by_vector() -> bool:
        # Only among its own file's chunks: hundreds of memories say nearly the same.
        only = {"path_prefix": path}
        page = await client.search("restarted by hand", parts=["vector"], page_size=3, filters=only)
        return [hit.path for hit in page.hits] == [path]

    async def by_entity() -> bool:
        page = await client.entities(f"INC-{100_000 + number}")
        return any(line.mention_count for line in page.entities)

    looks: dict[str, Callable[[], Awaitable[bool]]] = {
        "file": on_disk, "word": by_word, "vector": by_vector, "entity": by_entity,
    }  # fmt: skip
    for name, look in looks.items():
        while not await look():
            if time.monotonic() - sent > PATIENCE_SECONDS:
                raise RuntimeError(f"write {number} isn't there after {PATIENCE_SECONDS:g} s: {name}")
            await asyncio.sleep(LOOK_SECONDS)
        times.of[name].append(time.monotonic() - sent)


async def measure(pipeline: Pipeline, keys: list[str], options: argparse.Namespace, numbers: range) -> Times:
    times = Times()
    clients = [AsyncHoplineClient(pipeline.api_url, key) for key in keys]
    try:
        async with asyncio.TaskGroup() as group:
            start = time.monotonic()
            for at, number in enumerate(numbers):
                await asyncio.sleep(max(0.0, start + at / options.rate - time.monotonic()))
                client = clients[number % len(clients)]
                group.create_task(
                    write(client, pipeline, number, times, follows=number % options.sample == 0)
                )
    finally:
        for client in clients:
            await client.close()
    return times


async def write(
    client: AsyncHoplineClient, pipeline: Pipeline, number: int, times: Times, *, follows: bool
) -> None:
    sent = time.monotonic()
    written = await client.write(**memory(number))
    times.of["accepted"].append(time.monotonic() - sent)
    if follows:
        await follow(client, pipeline, number, sent, written.path, times)


def write_agents(folder: Path, count: int) -> list[str]:
    keys = [f"bench-key-{number}-{os.urandom(16).hex()}" for number in range(count)]
    entries = [
        {"sha256": hashlib.sha256(key.encode()).hexdigest(), "tenant": "bench", "agent": f"agent{number}"}
        for number, key in enumerate(keys)
    ]
    (folder / "keys.json").write_text(json.dumps({"keys": entries}))
    return keys


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--writes", type=int, default=1_200)
    parser.add_argument("--rate", type=float, default=20.0, help="writes a second, of all agents together")
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--sample", type=int, default=20, help="one write in so many is followed")
    parser.add_argument(
        "--warm-up", type=float, default=300.0, help="seconds of writes before the clock starts"
    )
    add_arguments(parser)
    options = parser.parse_args()
    with engines(options) as addresses, tempfile.TemporaryDirectory() as folder:
        keys = write_agents(Path(folder), options.agents)
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[],
        )
        with running(pipeline, *AGENTS, "watch", "api"):
            warm = round(options.warm_up * options.rate)
            asyncio.run(measure(pipeline, keys, options, range(warm)))
            pipeline.wait_idle(600)
            start = time.monotonic()
            times = asyncio.run(measure(pipeline, keys, options, range(warm, warm + options.writes)))
            seconds = time.monotonic() - start
            pipeline.stop()
    figures = {
        "writes_per_second": options.rate,
        "seconds": round(seconds, 1),
        "warm_up_seconds": options.warm_up,
        "load_average": os.getloadavg()[0],
        **times.summary(),
    }
    figures["holds"] = all(figures[f"{name}.p95"] <= limit for name, limit in TARGETS.items())
    Report(name="memories", figures=figures).finish()


if __name__ == "__main__":
    main()
