"""Words/s through the extract agent ÷ words/s of the same extractor called directly on the same windows, in one run.

    python -m bench.extract [--notes 200] [--warm-up 200] [--core 1] [--torch] [--kafka HOST:PORT --opensearch URL]

Both sides have the model pinned to the same core; everything else is free. The direct calls are made as the adapter
does them fastest, the next one made ready while the model runs (`extract_each`), half before and half after the
agent's run, so that a machine whose speed drifts favours neither side. The pipeline is real: events
through Kafka, the agents `ingest` and `extract` as processes, mentions told, rows in OpenSearch; its clock runs from
the first event sent until the last document's mentions are acknowledged.

Before it, as many other notes go the whole way (`--warm-up`), as the direct side makes calls before its own: the figure
is that of workers and engines that run. A node that has just started spends more on compiling itself than on the notes
(6 s of 11 over the first 200), and takes the model's core for it like anyone. `--warm-up 0` counts that, too.

`--torch`: the same model on torch (extra `gpu`), called directly on some of the windows, side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench import notes
from bench.cleaning import clean_up
from bench.engines import Addresses, add_arguments, engines
from bench.ingest import NAMESPACE, events, send
from bench.report import Report
from indexers.domain.entities.labels import DEFAULT_LABELS
from indexers.extractors.factory import load_extractor
from indexers.model_calls import TextToExtract, model_calls
from indexers.ports import EntityExtractor, ModelCall
from indexers.settings import ExtractorSettings
from streams.topics import Topics
from tests.labelled import AGENT_MEMORY, read_labelled
from tests.pipeline import Pipeline, running, wait_for

TARGET = 0.85
#: Labelled sentences of a note, so that there is something to find and tell.
SENTENCES = 4
#: Calls that other ways are timed on: torch is several times slower.
SAMPLED_CALLS = 300


def write_vault(root: Path, count: int) -> list[str]:
    """The notes' texts. Invented words with sentences that name people, teams and services."""
    sentences = [text.text for text in read_labelled(AGENT_MEMORY)]
    texts: list[str] = []
    for number in range(count):
        rnd = random.Random(f"extract {number}")  # noqa: S311 - reproducible text, no secret
        text = notes.note(number, count) + "\n## Log\n\n" + "\n".join(rnd.sample(sentences, SENTENCES)) + "\n"
        file = root / notes.path(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        texts.append(text)
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """`cpu`: seconds of all threads, which other work on the machine hardly changes."""

    clock: float
    cpu: float

    def __add__(self, other: Spent) -> Spent:
        return Spent(clock=self.clock + other.clock, cpu=self.cpu + other.cpu)


def direct_calls(extractor: EntityExtractor, calls: Sequence[ModelCall]) -> Spent:
    """One call after another, as the adapter does it fastest."""
    clock, cpu = time.perf_counter(), time.process_time()
    for _ in extractor.extract_each(calls):
        pass
    return Spent(clock=time.perf_counter() - clock, cpu=time.process_time() - cpu)


def one_by_one(extractor: EntityExtractor, calls: Sequence[ModelCall]) -> Spent:
    """Each call alone, nothing made ready meanwhile."""
    clock, cpu = time.perf_counter(), time.process_time()
    for call in calls:
        extractor.extract(call.windows, call.prompts, threshold=call.threshold)
    return Spent(clock=time.perf_counter() - clock, cpu=time.process_time() - cpu)


def run_agent(pipeline: Pipeline, vault: Path, count: int, *, start: int) -> tuple[Spent, dict[str, float]]:
    """Notes `start` to `start + count`, when those before are done."""
    process = psutil.Process(pipeline.processes["extract"].pid)
    records = events(vault, count, Topics(pipeline.prefix).file_changes, start=start)
    before = stage_seconds(pipeline)
    clock, cpu = time.perf_counter(), sum(process.cpu_times()[:2])
    asyncio.run(send(pipeline.kafka_servers, records))
    # Not by its metrics: to ask twenty times a second took the agent a twentieth of its time.
    wait_for(lambda: sum(committed(pipeline)) >= start + count, 1_800, "every note extracted")
    spent = Spent(clock=time.perf_counter() - clock, cpu=sum(process.cpu_times()[:2]) - cpu)
    return spent, {stage: total - before[stage] for stage, total in stage_seconds(pipeline).items()}


def stage_seconds(pipeline: Pipeline) -> dict[str, float]:
    """Since the agent began."""
    name = "hopline_stream_stage_seconds_sum"
    return {stage: pipeline.metric("extract", f'{name}{{stage="{stage}"}}') for stage in ("model", "commit")}


def committed(pipeline: Pipeline) -> list[int]:
    """Records of each batch that the agent has done with, by its log."""
    lines = (pipeline.data_dir / "extract.log").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["records"] for line in lines if '"batch.committed"' in line]


def figures(
    calls: Sequence[ModelCall], words: int, direct: Spent, agent: Spent, stages: dict[str, float]
) -> dict[str, Any]:
    ratio = direct.clock / agent.clock
    return {
        "ratio": round(ratio, 3),
        "target": TARGET,
        "holds": ratio >= TARGET,
        "ratio_of_cpu_seconds": round(direct.cpu / agent.cpu, 3),
        "words": words,
        "windows": sum(len(call.windows) for call in calls),
        "direct_words_per_second": round(words / direct.clock),
        "agent_words_per_second": round(words / agent.clock),
        "where_the_rest_goes_seconds": {
            "agent_total": round(agent.clock, 2),
            "model_called_directly": round(direct.clock, 2),
            "slower_model": round(stages["model"] - direct.clock, 2),
            "first_and_last_batch_and_waits": round(agent.clock - stages["model"], 2),
            "beside_it_tells_and_stores": round(stages["commit"], 2),
        },
        "load_average": os.getloadavg()[0],
    }


def beside_one_by_one(extractor: EntityExtractor, calls: Sequence[ModelCall]) -> dict[str, Any]:
    """How much of the adapter's speed is due to making calls ready ahead; on some of the windows, for people to see."""
    some = calls[:: max(1, len(calls) // SAMPLED_CALLS)]
    ahead, alone = direct_calls(extractor, some), one_by_one(extractor, some)
    return {"one_by_one_clock_over_ahead": round(alone.clock / ahead.clock, 3)}


def beside_torch(core: int, onnx: EntityExtractor, calls: list[ModelCall]) -> dict[str, Any]:
    torch = load_extractor(ExtractorSettings(backend="torch", device="cpu", cpu_affinity=(core,)))
    some = calls[:: max(1, len(calls) // SAMPLED_CALLS)]
    words = sum(len(window.split()) for call in some for window in call.windows)
    direct_calls(torch, some[:5])
    speeds = {
        name: round(words / direct_calls(extractor, some).clock)
        for name, extractor in (("onnx_int8", onnx), ("torch_fp32", torch))
    }
    return {
        "side_by_side_words_per_second": speeds
        | {"ratio": round(speeds["onnx_int8"] / speeds["torch_fp32"], 2)}
    }


def measure(addresses: Addresses, count: int, core: int, *, warm_up: int, torch: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        texts = write_vault(vault, warm_up + count)[warm_up:]
        extractor = load_extractor(ExtractorSettings(cpu_affinity=(core,)))
        jobs = [TextToExtract(text=text, labels=DEFAULT_LABELS) for text in texts]
        calls = model_calls(jobs, extractor=extractor)
        words = sum(len(text.split()) for text in texts)
        side_by_side = beside_torch(core, extractor, calls) if torch else {}
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault), "tenant": NAMESPACE.tenant_id}],
            settings={"HOPLINE_EXTRACTOR__CPU_AFFINITY": f"[{core}]"},
        )
        try:
            with running(pipeline, "ingest", "extract"):
                run_agent(pipeline, vault, warm_up, start=0)
                direct_calls(extractor, calls[:5])
                direct = direct_calls(extractor, calls[::2])
                agent, stages = run_agent(pipeline, vault, count, start=warm_up)
                direct += direct_calls(extractor, calls[1::2])
                side_by_side |= beside_one_by_one(extractor, calls)
                pipeline.stop()
        finally:
            asyncio.run(clean_up(pipeline))
    return figures(calls, words, direct, agent, stages) | {"warm_up_notes": warm_up} | side_by_side


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=200)
    parser.add_argument("--warm-up", type=int, default=200, help="notes before the clock starts")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--torch", action="store_true")
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses:
        measured = measure(
            addresses,
            arguments.notes,
            arguments.core,
            warm_up=arguments.warm_up,
            torch=arguments.torch,
        )
    Report(name="extract", figures=measured).finish()


if __name__ == "__main__":
    main()
