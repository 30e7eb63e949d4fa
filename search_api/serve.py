"""The process: one OpenSearch client, one model, one event loop; up until SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
import uvicorn
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from indexers.embedders.factory import identify_model, load_embedder
from indexers.errors import ConfigurationError, Transient
from indexers.extractors.factory import identify_extractor
from indexers.listening import bound_socket
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
from search_api.auth import KeyRing
from search_api.context.service import ContextService
from search_api.context.settings import ContextSettings
from search_api.documents import Documents
from search_api.documents_graph import DocumentGraph
from search_api.entities.curating import Curation
from search_api.entities.labelling import Labelling
from search_api.entities.reading import Entities
from search_api.entities.walking import Walks
from search_api.erasure.files import FileCount
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
from search_api.retrieval.query_vectors import QueryVectors
from search_api.retrieval.recall import Recall
from search_api.retrieval.service import SearchService
from search_api.served import served
from search_api.services import Readiness, Services
from search_api.settings import ApiSettings, LimitsSettings, SearchSettings
from streams.producer import EventProducer
from streams.settings import KafkaSettings
from streams.topics import Topics
from streams.versions import VersionClock

log = structlog.get_logger()

#: Vectors of queries take milliseconds on one core; more threads would only wait for each other.
_MODEL_THREADS: Final = 2
_FILE_THREADS: Final = 8
_STOP_SECONDS: Final = 10
_PREPARE_SECONDS: Final = 2.0
#: New objects before the collector looks at the young: a search makes thousands, nearly all free of cycles.
_YOUNG_OBJECTS: Final = 50_000


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


def serve(settings: ServeSettings) -> None:
    """Returns after SIGTERM or SIGINT. Raises ConfigurationError for what can't work."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # uvicorn stops on the signal and then raises it once more for the handler before its own: this one.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop where it is installed (there is none for Windows), else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(settings: ServeSettings) -> None:
    keys = KeyRing(settings.keys_file)
    api = settings.api
    listener = bound_socket(api.host, api.port, settings="HOPLINE_API__HOST, HOPLINE_API__PORT")
    embedder = await asyncio.to_thread(load_embedder, query_embedder(settings.embedder))
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    async with (
        opened(settings, embedder=embedder, metrics=ApiMetrics(registry)) as (services, gate),
        served(services, keys=keys, api=settings.api, mcp=settings.mcp) as app,
    ):
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        host, port = listener.getsockname()[:2]
        _spare_the_collector()
        log.info("api.listening", host=host, port=port, model=embedder.model_id)
        async with asyncio.TaskGroup() as group:
            preparing = group.create_task(_prepare(gate, embedder, server))
            await server.serve(sockets=[listener])
            preparing.cancel()
    failure = None if preparing.cancelled() else preparing.result()
    if failure is not None:
        raise failure
    log.info("api.stopped")


def _spare_the_collector() -> None:
    """What is loaded by now stays, so no collection needs to walk it: that was a twelfth of a search's work."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the services use and don't close."""

    model: Executor
    files: Executor
    identity: IdentityParts
    secret: InstallationSecret
    vaults: VaultTree


@asynccontextmanager
async def opened(
    settings: ServeSettings, *, embedder: Embedder, metrics: ApiMetrics
) -> AsyncIterator[tuple[Services, Gate]]:
    """The services over one client; closed at the end."""
    gate = gate_at(
        settings.opensearch_url,
        settings.opensearch,
        prefix=settings.prefix,
        retry=RetryPolicy.once(),
        observe=metrics.store.observe,
    )
    producer = EventProducer(settings.kafka, settings.kafka_servers)
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
                held = _Held(
                    model=model_threads, files=file_threads, identity=identity, secret=secret, vaults=vaults
                )
                yield _services(settings, gate, producer, embedder, library, held, metrics), gate
        finally:
            await producer.stop()
            await gate.close()


def query_embedder(settings: EmbedderSettings) -> EmbedderSettings:
    """Workers on torch, queries on onnxruntime, where the shipped model is the other half of the pair."""
    light = EmbedderSettings(threads=settings.threads, cpu_affinity=settings.cpu_affinity)
    if settings.backend == "torch" and identify_model(settings).pair_id == identify_model(light).pair_id:
        return light
    return settings


def _services(
    settings: ServeSettings,
    gate: Gate,
    producer: EventProducer,
    embedder: Embedder,
    library: VaultLibrary,
    held: _Held,
    metrics: ApiMetrics,
) -> Services:
    search = settings.search
    retrieval = Retrieval(
        gate,
        recall=Recall(gate, filter_ids_max=search.filter_ids_max),
        vectors=QueryVectors(embedder, held.model, entries=search.query_cache_entries),
        source_ranks=search.source_ranks,
        metrics=metrics,
    )
    service = SearchService(
        retrieval=retrieval,
        library=library,
        settings=search,
        text_max_bytes=settings.indexing.document_max_bytes,
        metrics=metrics,
    )
    topics = Topics(settings.prefix)
    quotas = Quotas(settings.limits, refusals=metrics.quota_refusals)
    memories = Memories(
        gate=gate,
        producer=producer,
        topics=topics,
        clock=VersionClock(),
        vaults=held.vaults,
        quotas=quotas,
        request_seconds=settings.api.request_timeout_seconds,
        content_max_chars=settings.api.memory_max_chars,
        metrics=metrics,
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
            page_size_max=search.page_size_max,
            text_max_bytes=settings.indexing.document_max_bytes,
            metrics=metrics,
        ),
        documents=Documents(gate, library),
        graph=DocumentGraph(gate, metrics),
        entities=Entities(gate),
        walks=Walks(gate),
        curation=Curation(gate, producer, topics, VersionClock()),
        labelling=Labelling(gate, producer, topics, model_id=identify_extractor(settings.extractor)),
        erasures=Erasures(
            gate=gate,
            producer=producer,
            topics=topics,
            clock=VersionClock(),
            count_files=FileCount(held.vaults),
            key=held.secret.derive(KEY_LABEL),
            audit=held.identity.audit,
        ),
        identity=held.identity,
        quotas=quotas,
        memories=memories,
        readiness=Readiness(gate, embedder),
        settings=search,
        metrics=metrics,
    )


async def _prepare(gate: Gate, embedder: Embedder, server: uvicorn.Server) -> ConfigurationError | None:
    """Make missing indices once the store is there; a store of another model ends the process."""
    while True:
        try:
            await gate.ensure_indices(
                dimension=embedder.dimension, pair_id=embedder.pair_id, cosine_floor=embedder.cosine_floor
            )
        except Transient as fault:
            log.warning("api.store_awaited", reason=fault.reason)
        except ConfigurationError as fault:
            server.should_exit = True
            return fault
        else:
            log.info("api.store_ready")
            return None
        await asyncio.sleep(_PREPARE_SECONDS)
