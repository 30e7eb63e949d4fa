"""p50 of POST /v1/search over HTTP ÷ p50 of (query embedding + the same raw _msearch), in one run.

    python -m bench.query [--notes 10000] [--queries 300] [--kafka HOST:PORT --opensearch URL]

Each query is asked both ways, in turns which first, over connections that stay open. The raw side embeds the
query with the same model and sends the two search bodies that the service sends, filters included, then reads
the answer; it does nothing else: no fusion, no rows of documents that only a vector found, no files, no
excerpts. No query is asked twice of the service, so its cache of query vectors never helps. Vectors: see
bench/filled.py.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.cleaning import clean_up
from bench.engines import Addresses, add_arguments, engines
from bench.filled import fill_index
from bench.notes import query, write_vault
from bench.report import Report
from indexers.domain.identity import AgentId, Namespace, Principal, Scope, TenantId
from indexers.embedders.factory import load_embedder
from indexers.opensearch.guard import guarded_body
from indexers.opensearch.names import IndexNames
from indexers.opensearch.rows import Index
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from search_api.requests import SearchFilters
from search_api.retrieval.queries import keyword_body, vector_body
from search_api.settings import SearchSettings
from tests.pipeline import KEY, Pipeline, running, write_keys

NAMESPACE = Namespace(tenant_id=TenantId("local"), agent_id=AgentId("me"), scope=Scope.SHARED)
TARGET = 1.4
WARM_UP = 100


@dataclass(kw_only=True)
class Post:
    """One connection that stays open."""

    url: str
    path: str
    headers: dict[str, str]

    def __post_init__(self) -> None:
        place = urlsplit(self.url)
        self._connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)

    def __call__(self, body: bytes) -> Any:
        self._connection.request("POST", self.path, body, self.headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise RuntimeError(f"{self.path} answered {response.status}: {answer}")
        return answer


@dataclass(frozen=True, kw_only=True)
class RawSearch:
    """What the service asks of the engine, asked by hand."""

    embedder: Embedder
    post: Post
    names: IndexNames

    def __call__(self, text: str) -> None:
        vector = self.embedder.embed_query(text).tolist()
        depth = SearchSettings().candidates
        filters = SearchFilters()
        bodies = {
            Index.DOCUMENTS: keyword_body(text, filters, size=depth),
            Index.CHUNKS: vector_body(vector, filters, size=depth, doc_ids=None),
        }
        answer = self.post(b"".join(self._lines(index, body) for index, body in bodies.items()))
        if any("error" in response for response in answer["responses"]):
            raise RuntimeError(str(answer)[:500])

    def _lines(self, index: Index, body: dict[str, Any]) -> bytes:
        tenant = NAMESPACE.tenant_id
        header = {"index": self.names.alias(index, tenant), "routing": tenant}
        header_line = json.dumps(header | {"allow_partial_search_results": False})
        principal = Principal(tenant_id=tenant, agent_id=NAMESPACE.agent_id)
        return f"{header_line}\n{json.dumps(guarded_body(body, principal))}\n".encode()


def timed(side: Callable[[str], object], text: str) -> float:
    start = time.perf_counter()
    side(text)
    return (time.perf_counter() - start) * 1_000


def in_turns(
    service: Callable[[str], object], raw: Callable[[str], object], count: int
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {"service": [], "raw": []}
    for number in range(WARM_UP + count):
        text = query(number)
        sides = [("service", service), ("raw", raw)]
        for name, side in sides if number % 2 else sides[::-1]:
            spent = timed(side, text)
            if number >= WARM_UP:
                taken[name].append(spent)
    return taken


def summary(milliseconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(milliseconds, n=20)
    return {"p50_ms": round(statistics.median(milliseconds), 2), "p95_ms": round(cuts[18], 2)}


def measure(addresses: Addresses, notes: int, queries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        write_vault(vault, notes)
        write_keys(Path(folder))
        embedder = load_embedder(EmbedderSettings())
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault)}],
        )
        try:
            chunks = asyncio.run(fill_index(pipeline, vault, notes, NAMESPACE, embedder))
            with running(pipeline, "api"):
                taken, steps, ranked = _ask(pipeline, embedder, queries)
                pipeline.stop()
        finally:
            asyncio.run(clean_up(pipeline, topics=False))
    service, raw = summary(taken["service"]), summary(taken["raw"])
    ratio = service["p50_ms"] / raw["p50_ms"]
    return {
        "ratio": round(ratio, 3),
        "target": TARGET,
        "holds": ratio <= TARGET,
        "ratio_p95": round(service["p95_ms"] / raw["p95_ms"], 3),
        "notes": notes,
        "chunks": chunks,
        "queries": queries,
        "service": service,
        "raw": raw,
        "service_steps_mean_ms": steps,
        "documents_ranked_mean": ranked,
        "vectors": "one real chunk per subject, the others around it (bench/filled.py)",
        "load_average": os.getloadavg()[0],
    }


def _ask(
    pipeline: Pipeline, embedder: Embedder, queries: int
) -> tuple[dict[str, list[float]], dict[str, float], float]:
    json_type = {"Content-Type": "application/json"}
    search = Post(
        url=pipeline.api_url, path="/v1/search", headers=json_type | {"Authorization": f"Bearer {KEY}"}
    )
    msearch = Post(
        url=pipeline.opensearch_url, path="/_msearch", headers={"Content-Type": "application/x-ndjson"}
    )

    ranked: list[int] = []

    def service(text: str) -> None:
        answer = search(json.dumps({"query": text}).encode())
        if len(answer["hits"]) < SearchSettings().page_size or any(
            h["stale_excerpt"] for h in answer["hits"]
        ):
            raise RuntimeError("an answer is not what a user would get")
        ranked.append(answer["candidates"])

    raw = RawSearch(embedder=embedder, post=msearch, names=IndexNames(prefix=pipeline.prefix))
    taken = in_turns(service, raw, queries)
    steps = {step: _mean(pipeline, step) for step in ("embed", "recall", "excerpts")}
    return taken, steps, round(statistics.mean(ranked), 1)


def _mean(pipeline: Pipeline, step: str) -> float:
    name = "hopline_search_step_seconds"
    total, count = (pipeline.metric("api", f'{name}_{part}{{step="{step}"}}') for part in ("sum", "count"))
    return round(total / count * 1_000, 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=300)
    add_arguments(parser)
    arguments = parser.parse_args()
    with engines(arguments) as addresses:
        report = Report(name="query", figures=measure(addresses, arguments.notes, arguments.queries))
    report.finish()


if __name__ == "__main__":
    main()
