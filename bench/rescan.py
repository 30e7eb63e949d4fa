"""What a re-scan of an unchanged vault costs: files/s through the hash gate, and no embedding.

    python -m bench.rescan [--notes 10000] [--kafka HOST:PORT --opensearch URL]

The vault is indexed already (rows by the pipeline's own code, bench/filled.py). First `hopline rescan` sends
every file while ingest is not running; then ingest starts, and the gate's speed is read from its log, from the
first batch to the last. Then every file is touched (new time, same bytes) and scanned again with
the agents running: from the start of the scan to the last skipped event. The embed agent must do nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.cleaning import clean_up
from bench.engines import Addresses, add_arguments, engines
from bench.filled import fill_index
from bench.notes import write_vault
from bench.report import Report
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.embedders.factory import load_embedder
from indexers.settings import EmbedderSettings
from tests.pipeline import Pipeline, running, wait_for

NAMESPACE = Namespace(tenant_id=TenantId("local"), agent_id=AgentId("me"), scope=Scope.SHARED)
TARGET = 3_000
SELDOM_SECONDS = 0.25
SKIPPED = 'hopline_stream_skipped_total{reason="same"}'


def rescan(pipeline: Pipeline, count: int) -> float:
    """Seconds of the scan itself: walking, reading, hashing, sending."""
    done = pipeline.cli("rescan", "--json", seconds=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    [report] = json.loads(done.stdout).values()
    if (report["files"], report["upserted"], report["deleted"]) != (count, count, 0):
        raise RuntimeError(f"not an unchanged vault: {report}")
    return float(report["seconds"])


def gate_rate(pipeline: Pipeline, count: int) -> tuple[float, float]:
    """Files/s from the end of the first batch to that of the last, by the clock and by ingest's own CPU time.

    The clock is that of ingest's log, one line a batch: asking for the counter costs ingest time of its own, so it
    is asked seldom.
    """

    def cpu_seconds() -> float:
        return pipeline.metric("ingest", "process_cpu_seconds_total")

    def skipped() -> float:
        time.sleep(SELDOM_SECONDS)
        return pipeline.metric("ingest", SKIPPED)

    pipeline.start("ingest")
    wait_for(lambda: skipped() > 0, 120, "the first batch")
    first, cpu = skipped(), cpu_seconds()
    wait_for(lambda: skipped() >= count, 600, "every file skipped")
    return logged_rate(pipeline.data_dir / "ingest.log"), (count - first) / (cpu_seconds() - cpu)


def logged_rate(log: Path) -> float:
    """Records/s of the batches after the first, by the time each was committed."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    batches = [line for line in lines if line["event"] == "batch.committed"]
    first, last = (datetime.fromisoformat(batch["timestamp"]) for batch in (batches[0], batches[-1]))
    return float(sum(batch["records"] for batch in batches[1:])) / (last - first).total_seconds()


def rescan_rate(pipeline: Pipeline, vault: Path, count: int) -> float:
    """Files/s from the start of the scan to the last skip, agents running; every file touched before."""
    for file in vault.rglob("*.md"):
        os.utime(file)
    before = pipeline.metric("ingest", SKIPPED)
    scan = rescan(pipeline, count)
    rest = wait_for(
        lambda: pipeline.metric("ingest", SKIPPED) - before >= count, 600, "every touched file skipped"
    )
    return count / (scan + rest)


def measure(addresses: Addresses, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        write_vault(vault, count)
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault)}],
            # The first scan is sent while nobody ingests, and needn't find that out for long.
            settings={"HOPLINE_WATCHER__BULK_PATIENCE_SECONDS": "2"},
        )
        try:
            asyncio.run(fill_index(pipeline, vault, count, NAMESPACE, load_embedder(EmbedderSettings())))
            with running(pipeline, "embed"):
                scan = rescan(pipeline, count)
                gate, gate_cpu = gate_rate(pipeline, count)
                whole = rescan_rate(pipeline, vault, count)
                embeddings = pipeline.metric("embed", "hopline_stream_embeddings_total")
                pipeline.stop()
        finally:
            asyncio.run(clean_up(pipeline))
    return {
        "gate_files_per_second": round(gate),
        "target": TARGET,
        "holds": gate >= TARGET and embeddings == 0,
        "gate_files_per_cpu_second": round(gate_cpu),
        "embeddings": embeddings,
        "scan_files_per_second": round(count / scan),
        "touched_and_rescanned_files_per_second": round(whole),
        "files": count,
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000)
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses:
        report = Report(name="rescan", figures=measure(addresses, arguments.notes))
    report.finish()


if __name__ == "__main__":
    main()
