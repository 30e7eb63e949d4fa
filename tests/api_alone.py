"""The query service with no engine behind it: for what it answers by itself."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
from prometheus_client import CollectorRegistry

from hopline.local.ports import free_ports
from indexers.settings import EmbedderSettings, ExtractorSettings, IndexingSettings, OpenSearchSettings
from search_api.app import create_app
from search_api.auth import KeyRing
from search_api.context.settings import ContextSettings
from search_api.keys import store_key
from search_api.metrics import ApiMetrics
from search_api.settings import ApiSettings, SearchSettings
from search_api.wiring import ServeSettings, opened
from streams.settings import KafkaSettings
from tests.api import NO_BROKER, embedder, key_of, principal

ME = principal("acme")


def http_of(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://hopline")


def without_engines(folder: Path) -> ServeSettings:
    """With a key for `ME`."""
    store_key(folder / "keys.json", key_of(ME), ME)
    return ServeSettings(
        prefix="away",
        opensearch_url=f"http://127.0.0.1:{free_ports()}",
        opensearch=OpenSearchSettings(),
        kafka_servers=NO_BROKER,
        kafka=KafkaSettings(),
        embedder=EmbedderSettings(),
        extractor=ExtractorSettings(),
        indexing=IndexingSettings(),
        vaults=(),
        api=ApiSettings(),
        search=SearchSettings(),
        context=ContextSettings(),
        keys_file=folder / "keys.json",
    )


@contextlib.asynccontextmanager
async def running_alone(folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    settings, metrics = without_engines(folder), ApiMetrics(CollectorRegistry())
    async with opened(settings, embedder=embedder(), metrics=metrics) as (services, _):
        app = create_app(services, keys=KeyRing(settings.keys_file), settings=settings.api)
        async with http_of(app) as http:
            yield http
