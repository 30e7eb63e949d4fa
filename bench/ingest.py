"""End-to-end notes/s ÷ notes/s of the same embedder called directly on the same chunks, in one run.

    python -m bench.ingest [--notes 1000] [--core 1] [--kafka HOST:PORT --opensearch URL]

Both sides have the model pinned to the same core; everything else is free. The direct calls are made half
before and half after the pipeline's run, so that a machine whose speed drifts favours neither side. The
pipeline is real: events through Kafka, the agents `ingest` and `embed` as processes, rows in OpenSearch; its
clock runs from the first event sent until the last chunk is acknowledged. Prints where the rest goes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.cleaning import clean_up
from bench.engines import Addresses, add_arguments, engines
from bench.filled import chunk_texts, planned_notes
from bench.notes import path, write_vault
from bench.report import Report
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.embedders.factory import load_embedder
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from streams.event_fields import new_event_fields
from streams.events import FileChange, encode
from streams.producer import EventProducer, OutgoingRecord
from streams.settings import KafkaSettings
from streams.topics import Topics
from streams.versions import VersionClock
from tests.pipeline import Pipeline, running, wait_for

NAMESPACE = Namespace(tenant_id=TenantId("bench"), agent_id=AgentId("me"), scope=Scope.SHARED)
TARGET = 0.80
#: As the embed agent calls it.
TEXTS_PER_CALL = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds of the pipeline's run, and what its agents say of it."""

    total: float
    ingest_done: float
    stages: dict[str, dict[str, float]]


def direct_seconds(embedder: Embedder, notes: Sequence[Sequence[str]]) -> float:
    flat = sorted((text for note in notes for text in note), key=len)
    start = time.perf_counter()
    for at in range(0, len(flat), TEXTS_PER_CALL):
        embedder.embed_passages(flat[at : at + TEXTS_PER_CALL])
    return time.perf_counter() - start


def events(vault: Path, count: int, topic: str, *, start: int = 0) -> list[OutgoingRecord]:
    """Notes `start` to `start + count` as the watcher tells of them."""
    clock = VersionClock()
    records: list[OutgoingRecord] = []
    for number in range(start, start + count):
        raw = (vault / path(number)).read_bytes()
        change = FileChange(
            **new_event_fields(NAMESPACE),
            version=clock.next(),
            path=path(number),
            kind="upserted",
            vault_path=path(number),
            size=len(raw),
            content=raw,
            modified_at=datetime.now(UTC).isoformat(),
        )
        records.append(OutgoingRecord(topic=topic, key=change.document.record_key, value=encode(change)))
    return records


async def send(servers: str, records: Sequence[OutgoingRecord]) -> None:
    async with EventProducer(KafkaSettings(), servers) as producer:
        await producer.send_all(records)


def run_pipeline(pipeline: Pipeline, vault: Path, count: int) -> Run:
    topics = Topics(pipeline.prefix)
    records = events(vault, count, topics.file_changes)
    start = time.perf_counter()
    asyncio.run(send(pipeline.kafka_servers, records))

    def confirmed(agent: str, topic: str) -> bool:
        return pipeline.metric(agent, f'hopline_stream_records_total{{topic="{topic}"}}') >= count

    wait_for(lambda: confirmed("ingest", topics.file_changes), 900, "every note ingested")
    ingest_done = time.perf_counter() - start
    wait_for(lambda: confirmed("embed", topics.documents), 900, "every note embedded")
    total = time.perf_counter() - start
    return Run(
        total=total, ingest_done=ingest_done, stages={a: stages(pipeline, a) for a in ("ingest", "embed")}
    )


def stages(pipeline: Pipeline, agent: str) -> dict[str, float]:
    name = "hopline_stream_stage_seconds"
    found = {
        stage: pipeline.metric(agent, f'{name}_sum{{stage="{stage}"}}')
        for stage in ("prepare", "commit", "model")
    }
    return found | {"batches": pipeline.metric(agent, f'{name}_count{{stage="prepare"}}')}


def figures(notes: Sequence[Sequence[str]], direct: float, run: Run) -> dict[str, Any]:
    embed, ingest = run.stages["embed"], run.stages["ingest"]
    ratio = direct / run.total
    return {
        "ratio": round(ratio, 3),
        "target": TARGET,
        "holds": ratio >= TARGET,
        "notes": len(notes),
        "chunks": sum(map(len, notes)),
        "direct_notes_per_second": round(len(notes) / direct, 2),
        "pipeline_notes_per_second": round(len(notes) / run.total, 2),
        "where_the_rest_goes_seconds": {
            "pipeline_total": round(run.total, 2),
            "model_called_directly": round(direct, 2),
            "model_slower_beside_the_rest": round(embed["model"] - direct, 2),
            "embed_looks_up_known_vectors_and_versions": round(embed["prepare"] - embed["model"], 2),
            "embed_waits": round(run.total - embed["prepare"], 2),
        },
        "beside_the_model_seconds": {
            "embed_stores": round(embed["commit"], 2),
            "ingest_prepares": round(ingest["prepare"], 2),
            "ingest_stores": round(ingest["commit"], 2),
            "ingest_done_after": round(run.ingest_done, 2),
        },
        "batches": {"ingest": ingest["batches"], "embed": embed["batches"]},
        "load_average": os.getloadavg()[0],
    }


def measure(addresses: Addresses, count: int, core: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        write_vault(vault, count)
        embedder = load_embedder(EmbedderSettings(cpu_affinity=(core,)))
        notes = [chunk_texts(note) for note in planned_notes(vault, count, NAMESPACE, embedder)]
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault), "tenant": "bench"}],
            settings={"HOPLINE_EMBEDDER__CPU_AFFINITY": f"[{core}]"},
        )
        try:
            with running(pipeline, "ingest", "embed"):
                embedder.embed_passages(notes[0])
                direct = direct_seconds(embedder, notes[: count // 2])
                run = run_pipeline(pipeline, vault, count)
                direct += direct_seconds(embedder, notes[count // 2 :])
                pipeline.stop()
        finally:
            asyncio.run(clean_up(pipeline))
    return figures(notes, direct, run)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses:
        report = Report(name="ingest", figures=measure(addresses, arguments.notes, arguments.core))
    report.finish()


if __name__ == "__main__":
    main()
