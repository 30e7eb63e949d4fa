"""Settings of the query service, and its services made of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from indexers.embedders.factory import identify_model, load_embedder
from indexers.extractors.factory import identify_extractor
from indexers.opensearch.gate import Gate
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.ports import Embedder
from indexers.settings import (
    EmbedderSettings,
    ExtractorSettings,
    IndexingSettings,
    OpenSearchSettings,
    VaultRoot,
)
from indexers.vault.tree import VaultTree
from indexers.watched import WatchedEmbedder
from search_api.context.service import ContextService
from search_api.context.settings import ContextSettings
from search_api.documents import Documents
from search_api.documents_graph import DocumentGraph
from search_api.entities.curating import Curation
from search_api.entities.labelling import Labelling
from search_api.entities.reading import Entities
from search_api.entities.walking import Walks
from search_api.erasure.files import FileCount
from search_api.erasure.following import OpenErasures
from search_api.erasure.receipt import KEY_LABEL
from search_api.erasure.service import Erasures
from search_api.identity.secret import SECRET_FILE, InstallationSecret
from search_api.identity.settings import OidcSettings
from search_api.identity.wiring import IdentityParts, opened_identity
from search_api.mcp.settings import McpSettings
from search_api.memories.writing import Memories
from search_api.metrics import ApiMetrics
from search_api.quotas import Quotas
from search_api.reading import VaultLibrary
from search_api.retrieval.pipeline import Retrieval
from search_api.retrieval.service import SearchService
from search_api.retrieval.spaces import GenerationSpaces
from search_api.services import Readiness, Services
from search_api.settings import ApiSettings, LimitsSettings, SearchSettings
from search_api.web.settings import WebSettings
from streams.producer import EventProducer
from streams.settings import KafkaSettings, TracingSettings
from streams.topics import Topics
from streams.tracing import OFF, Tracing
from streams.versions import VersionClock

#: Vectors of queries take milliseconds on one core; more threads would only wait for each other.
_MODEL_THREADS: Final = 2
_FILE_THREADS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The settings that the query service needs, from wherever they came."""

    prefix: str
    opensearch_url: str
    opensearch: OpenSearchSettings
    kafka_servers: str
    kafka: KafkaSettings
    embedder: EmbedderSettings
    extractor: ExtractorSettings
    indexing: IndexingSettings
    vaults: tuple[VaultRoot, ...]
    api: ApiSettings
    search: SearchSettings
    keys_file: Path
    context: ContextSettings = field(default_factory=ContextSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    oidc: OidcSettings = field(default_factory=OidcSettings)
    #: None: that of the file beside the key file, made where it is missing.
    secret: InstallationSecret | None = None
    #: Vaults of the namespaces without a root of their own; None: there are none.
    memories: Path | None = None
    mcp: McpSettings = field(default_factory=McpSettings)
    web: WebSettings = field(default_factory=WebSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the services use and don't close."""

    files: Executor
    spaces: GenerationSpaces
    identity: IdentityParts
    secret: InstallationSecret
    vaults: VaultTree
    tracing: Tracing


@asynccontextmanager
async def opened(
    settings: ServeSettings, *, embedder: Embedder, metrics: ApiMetrics, tracing: Tracing = OFF
) -> AsyncIterator[tuple[Services, Gate]]:
    """The services over one client; closed at the end."""
    embedder = WatchedEmbedder(embedder=embedder, observe=metrics.model.observe)
    gate = gate_at(
        settings.opensearch_url,
        settings.opensearch,
        prefix=settings.prefix,
        retry=RetryPolicy.once(),
        observe=metrics.store.observe,
    )
    producer = EventProducer(settings.kafka, settings.kafka_servers, tracing=tracing)
    secret = settings.secret or InstallationSecret.ensure(settings.keys_file.with_name(SECRET_FILE))
    with (
        ThreadPoolExecutor(_MODEL_THREADS, thread_name_prefix="query-model") as model_threads,
        ThreadPoolExecutor(_FILE_THREADS, thread_name_prefix="vault-files") as file_threads,
    ):
        try:
            vaults = VaultTree(settings.vaults, settings.memories)
            library = VaultLibrary(vaults, file_threads)
            async with opened_identity(
                gate,
                secret,
                metrics,
                oidc=settings.oidc,
                limits=settings.limits,
                ttl_seconds=settings.api.key_cache_seconds,
            ) as identity:
                spaces = _spaces(settings, gate, embedder, model_threads, metrics)
                held = _Held(
                    files=file_threads,
                    spaces=spaces,
                    identity=identity,
                    secret=secret,
                    vaults=vaults,
                    tracing=tracing,
                )
                following = asyncio.create_task(spaces.follow())
                try:
                    yield _services(settings, gate, producer, embedder, library, held, metrics), gate
                finally:
                    following.cancel()
                    await asyncio.wait([following])
        finally:
            await producer.stop()
            await gate.close()


def query_embedder(settings: EmbedderSettings) -> EmbedderSettings:
    """Workers on torch, queries on onnxruntime, where the shipped model is the other half of the pair."""
    light = EmbedderSettings(threads=settings.threads, cpu_affinity=settings.cpu_affinity)
    if settings.backend == "torch" and identify_model(settings).pair_id == identify_model(light).pair_id:
        return light
    return settings


def _spaces(
    settings: ServeSettings, gate: Gate, embedder: Embedder, executor: Executor, metrics: ApiMetrics
) -> GenerationSpaces:
    return GenerationSpaces(
        gate,
        query_embedder(settings.embedder),
        embedder,
        executor,
        load=lambda other: WatchedEmbedder(
            embedder=load_embedder(query_embedder(other)), observe=metrics.model.observe
        ),
        entries=settings.search.query_cache_entries,
        filter_ids_max=settings.search.filter_ids_max,
    )


def _services(
    settings: ServeSettings,
    gate: Gate,
    producer: EventProducer,
    embedder: Embedder,
    library: VaultLibrary,
    held: _Held,
    metrics: ApiMetrics,
) -> Services:
    service = _search(settings, gate, library, held.spaces, metrics)
    topics = Topics(settings.prefix)
    quotas = Quotas(settings.limits, refusals=metrics.quota_refusals)
    # One for all that this process sends: what one has seen of a document's versions, the others must not fall behind.
    clock = VersionClock()
    memories = Memories(
        gate=gate,
        producer=producer,
        topics=topics,
        clock=clock,
        vaults=held.vaults,
        quotas=quotas,
        request_seconds=settings.api.request_timeout_seconds,
        content_max_chars=settings.api.memory_max_chars,
        metrics=metrics,
    )
    erasures = Erasures(
        gate=gate,
        producer=producer,
        topics=topics,
        clock=clock,
        files=FileCount(held.vaults),
        key=held.secret.derive(KEY_LABEL),
        audit=held.identity.audit,
        quotas=quotas,
    )
    return Services(
        search=service,
        context=ContextService(
            search=service,
            library=library,
            counter=embedder,
            # Not the model's: a query's vector must not wait for the counting of another's context.
            executor=held.files,
            settings=settings.context,
            page_size_max=settings.search.page_size_max,
            text_max_bytes=settings.indexing.document_max_bytes,
            metrics=metrics,
        ),
        documents=Documents(gate, library),
        graph=DocumentGraph(gate, metrics),
        entities=Entities(gate),
        walks=Walks(gate),
        curation=Curation(gate, producer, topics, clock),
        labelling=Labelling(gate, producer, topics, model_id=identify_extractor(settings.extractor)),
        erasures=erasures,
        open_erasures=OpenErasures(gate=gate, erasures=erasures, metrics=metrics),
        identity=held.identity,
        quotas=quotas,
        memories=memories,
        readiness=Readiness(gate, held.spaces),
        spaces=held.spaces,
        settings=settings.search,
        metrics=metrics,
        tracing=held.tracing,
    )


def _search(
    settings: ServeSettings,
    gate: Gate,
    library: VaultLibrary,
    spaces: GenerationSpaces,
    metrics: ApiMetrics,
) -> SearchService:
    search = settings.search
    retrieval = Retrieval(
        gate,
        spaces=spaces,
        source_ranks=search.source_ranks,
        metrics=metrics,
    )
    return SearchService(
        retrieval=retrieval,
        library=library,
        settings=search,
        text_max_bytes=settings.indexing.document_max_bytes,
        metrics=metrics,
    )
