"""The names of labelled texts as the agents store them: events through Kafka, rows read from OpenSearch."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cleaning import clean_up, open_gate
from bench.engines import Addresses
from bench.ingest import NAMESPACE, events, send
from bench.notes import path
from indexers.control import change_labels, read_labels
from indexers.domain.entities.labels import NamespaceLabels
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.rows import Index
from streams.topics import Topics
from tests.labelled import Labelled, Place, stored_places
from tests.pipeline import Pipeline, running


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What one text's rows say: places named by the model, and by the rules in front of it."""

    by_model: frozenset[Place]
    by_rule: frozenset[Place]


def named_by_agents(
    addresses: Addresses, texts: Sequence[Labelled], labels: NamespaceLabels, settings: dict[str, str]
) -> list[Named]:
    """Each text a note of a vault of its own, through `ingest`, `extract` and `link` as processes."""
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        for number, text in enumerate(texts):
            file = vault / path(number)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.text, encoding="utf-8")
        pipeline = Pipeline(
            prefix=f"b{os.urandom(5).hex()}",
            kafka_servers=addresses.kafka_servers,
            opensearch_url=addresses.opensearch_url,
            data_dir=Path(folder),
            vaults=[{"name": "bench", "path": str(vault), "tenant": NAMESPACE.tenant_id}],
            settings=settings,
        )
        try:
            with running(pipeline, "ingest", "extract", "link"):
                asyncio.run(_ask_for(pipeline, labels))
                records = events(vault, len(texts), Topics(pipeline.prefix).file_changes)
                asyncio.run(send(pipeline.kafka_servers, records))
                pipeline.wait_idle(1_800)
                return asyncio.run(_rows(pipeline, len(texts)))
        finally:
            asyncio.run(clean_up(pipeline))


async def _ask_for(pipeline: Pipeline, labels: NamespaceLabels) -> None:
    gate, namespace = open_gate(pipeline), EntityNamespace.of(NAMESPACE)
    try:
        [now] = (await read_labels(gate, [namespace])).values()
        await change_labels(gate, now, labels, settled=False, by="bench", at="2026-11-30T00:00:00Z")
    finally:
        await gate.close()


async def _rows(pipeline: Pipeline, count: int) -> list[Named]:
    gate, principal = open_gate(pipeline), Principal.pipeline(NAMESPACE.tenant_id)
    try:
        await gate.refresh(Index.MENTIONS)
        rows = [row.source async for row in gate.scan(principal, Index.MENTIONS, {"match_all": {}})]
    finally:
        await gate.close()
    stored = stored_places(rows)
    return [
        Named(
            by_model=frozenset(stored.get((path(number), "model"), ())),
            by_rule=frozenset(stored.get((path(number), "pattern"), ())),
        )
        for number in range(count)
    ]
