"""What a search costs beside its parts, in one run: p50 over HTTP ÷ p50 of what cannot be left out.

    python -m bench.query [--notes 10000] [--queries 300] [--kafka HOST:PORT --opensearch URL]

Two figures, each over queries of its own:

- `plain`: `parts: [keyword, vector]` ÷ (query embedding + one raw `_msearch` of all that the service searches for). The
  raw side does nothing else: no fusion, no rows of documents that only a vector found, no files, no excerpts. The
  service sends the searches that need no vector while the model makes it; the raw side sends all behind it, at once.
- `graph`: the default request ÷ (query embedding + every request that the query sent, once more, by the product's
  own client, one after another, and the recall's two joined to one here too).

What is sent is recorded (bench/sent.py) in the bench's own process before anything is timed, and the service must
answer the same documents. Both sides take turns which goes first, over connections that stay open. No query is asked
twice of the service, so its cache of query vectors never helps. Rows: bench/filled.py, bench/woven.py. How the p95
grows with the vault: bench/growth.py.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
from pathlib import Path
from typing import Any

from bench.cleaning import clean_up, open_gate
from bench.engines import Addresses, add_arguments, engines
from bench.filled import fill_index
from bench.notes import write_vault
from bench.query_sides import Rig, both_sides, round_trips
from bench.report import Report
from bench.woven import weave, write_names
from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TenantId
from indexers.embedders.factory import load_embedder
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from tests.pipeline import Pipeline, running, write_keys

NAMESPACE = Namespace(tenant_id=TenantId("local"), agent_id=AgentId("me"), scope=Scope.SHARED)
PRINCIPAL = Principal(tenant_id=NAMESPACE.tenant_id, agent_id=NAMESPACE.agent_id)
TARGET = 1.4
#: Round trips of the default depth 2, and of depth 3.
TRIPS_TARGET = {2: 4, 3: 5}
#: Most queries whose round trips at depth 3 are counted.
DEEP_QUERIES = 50


def measure(addresses: Addresses, notes: int, queries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        write_vault(vault, notes)
        write_keys(Path(folder))
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault)}],
        )
        embedder = load_embedder(EmbedderSettings())
        try:
            chunks = asyncio.run(_fill(pipeline, vault, notes, embedder))
            with running(pipeline, "api"):
                figures = _figures(pipeline, embedder, queries)
                pipeline.stop()
        finally:
            asyncio.run(clean_up(pipeline, topics=False))
    return figures | {
        "notes": notes,
        "chunks": chunks,
        "queries": queries,
        "vectors": "one real chunk per subject, the others around it (bench/filled.py)",
        "load_average": os.getloadavg()[0],
    }


async def _fill(pipeline: Pipeline, vault: Path, notes: int, embedder: Embedder) -> int:
    chunks = await fill_index(pipeline, vault, notes, NAMESPACE, embedder)
    gate = open_gate(pipeline)
    try:
        await weave(gate, range(notes), notes, NAMESPACE)
        await write_names(gate, notes, NAMESPACE, version=1)
        await gate.refresh()
    finally:
        await gate.close()
    return chunks


def _figures(pipeline: Pipeline, embedder: Embedder, queries: int) -> dict[str, Any]:
    rig = Rig(pipeline=pipeline, principal=PRINCIPAL, embedder=embedder)
    # As the service does: what the bench has loaded is no work of a replay.
    gc.collect()
    gc.freeze()
    plain = both_sides(rig, "plain", first=0, count=queries)
    graph = both_sides(rig, "graph", first=plain.next_query, count=queries)
    deep = round_trips(rig, depth=3, first=0, count=min(queries, DEEP_QUERIES))
    gc.unfreeze()
    trips = {2: graph.round_trips_max, 3: max(deep)}
    ratios = {"plain": plain.ratio, "graph": graph.ratio}
    return {
        "holds": all(ratio <= TARGET for ratio in ratios.values())
        and all(trips[depth] <= most for depth, most in TRIPS_TARGET.items()),
        "target": TARGET,
        "plain": plain.figures,
        "graph": graph.figures | {"round_trips_max_depth_3": trips[3]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=300)
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses:
        figures = measure(addresses, arguments.notes, arguments.queries)
    Report(name="query", figures=figures).finish()


if __name__ == "__main__":
    main()
