"""Nothing of a bench stays on the engines."""

from __future__ import annotations

from indexers.opensearch.connect import connect
from indexers.opensearch.gate import Gate
from indexers.opensearch.names import IndexNames
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings
from streams.admin import delete_topics
from streams.settings import KafkaSettings
from streams.topics import Topics
from tests.pipeline import Pipeline


def open_gate(pipeline: Pipeline, retry: RetryPolicy | None = None) -> Gate:
    """By default a request that fails isn't sent again."""
    settings = OpenSearchSettings(timeout_seconds=60)
    client = connect(settings, pipeline.opensearch_url)
    names = IndexNames(prefix=pipeline.prefix)
    return Gate(client, names, retry=retry or RetryPolicy.once(), settings=settings)


async def clean_up(pipeline: Pipeline, *, topics: bool = True) -> None:
    gate = open_gate(pipeline)
    try:
        await gate.drop_indices()
    finally:
        await gate.close()
    if topics:
        every = list(Topics(pipeline.prefix).retention_ms)
        await delete_topics(KafkaSettings(), pipeline.kafka_servers, every)
