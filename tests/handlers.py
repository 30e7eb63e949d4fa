"""Handlers of the agents as their processes build them, and the models that they hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry

from indexers.embedders.factory import load_embedder
from indexers.extractors.factory import load_extractor
from indexers.opensearch.gate import Gate
from indexers.planning import IndexVersions
from indexers.ports import Embedder, EntityExtractor
from indexers.settings import EmbedderSettings, ExtractorSettings
from streams.agents.config import AgentConfig
from streams.agents.embed import EmbedHandler
from streams.agents.embed.model import Model
from streams.agents.extract import ExtractHandler
from streams.agents.extract.model import Model as ExtractorModel
from streams.agents.extract.model import Watched
from streams.agents.ingest import IngestHandler
from streams.agents.ingest.materialise import Materialise
from streams.agents.ingest.memories import Memories
from streams.agents.ingest.plan import Planner
from streams.agents.ingest.relations import Relations
from streams.agents.ingest.statements import Journals
from streams.agents.link import LinkHandler
from streams.agents.link.journal import CurationJournal
from streams.agents.progress import Progress
from streams.context import AgentContext
from streams.dlq import DeadLetters
from streams.health import Liveness, Readiness
from streams.hold import Holder
from streams.metrics import StreamMetrics
from streams.producer import EventProducer
from streams.tracing import OFF, Tracing


@cache
def shipped_embedder() -> Embedder:
    return load_embedder(EmbedderSettings())


@cache
def shipped_extractor() -> EntityExtractor:
    return load_extractor(ExtractorSettings())


class RenamedModel:
    """A shipped model under another id, as a later release would have it. All else is its own."""

    def __init__(self, model: Embedder | EntityExtractor, model_id: str) -> None:
        self._model = model
        self.model_id = model_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def ingest_handler(
    config: AgentConfig, gate: Gate, context: AgentContext, embedder: Embedder, executor: ThreadPoolExecutor
) -> IngestHandler:
    versions = IndexVersions.of(embedder, embedder.model_id, config.indexing)
    vaults = config.open_vaults()
    journals = Journals(vaults=vaults, cap_bytes=config.indexing.document_max_bytes)
    memories = Memories(vaults=vaults, settings=config.indexing)
    return IngestHandler(
        gate=gate,
        vaults=vaults,
        memories=memories,
        materialise=Materialise(context=context, memories=memories, writers=executor),
        progress=progress_of(gate, context),
        topics=config.topics,
        planner=Planner(counter=embedder, settings=config.indexing, versions=versions),
        relations=Relations(gate=gate, context=context, journals=journals, executor=executor),
        context=context,
        executor=executor,
        inline_max_bytes=config.indexing.inline_max_bytes,
        event_max_bytes=config.kafka.max_message_bytes - 4_096,
    )


def progress_of(gate: Gate, context: AgentContext) -> Progress:
    progress = Progress(gate=gate, context=context)
    if not context.after_park:
        context.after_park.append(progress.failed)
    return progress


def embed_handler(
    config: AgentConfig, gate: Gate, context: AgentContext, embedder: Embedder, executor: ThreadPoolExecutor
) -> EmbedHandler:
    return EmbedHandler(
        gate=gate,
        vaults=config.open_vaults(),
        model=Model(embedder=embedder, executor=executor, beat=context.beat),
        settings=config.indexing,
        context=context,
        progress=progress_of(gate, context),
        files=executor,
    )


def extract_handler(
    config: AgentConfig,
    gate: Gate,
    context: AgentContext,
    extractor: EntityExtractor,
    executor: ThreadPoolExecutor,
) -> ExtractHandler:
    return ExtractHandler(
        gate=gate,
        vaults=config.open_vaults(),
        model=ExtractorModel(
            extractor=Watched(extractor=extractor, context=context),
            executor=executor,
            rules=executor,
            batch_windows=config.extractor.batch_windows,
        ),
        context=context,
        progress=progress_of(gate, context),
        files=executor,
        document_max_bytes=config.indexing.document_max_bytes,
        event_max_bytes=config.kafka.max_message_bytes - 4_096,
    )


def link_handler(
    config: AgentConfig, gate: Gate, context: AgentContext, executor: ThreadPoolExecutor
) -> LinkHandler:
    vaults = config.open_vaults()
    return LinkHandler(
        gate=gate,
        journal=CurationJournal(vaults=vaults),
        context=context,
        progress=progress_of(gate, context),
        files=executor,
    )


def context_of(
    config: AgentConfig, agent: str, producer: EventProducer, tracing: Tracing = OFF
) -> AgentContext:
    metrics = StreamMetrics(CollectorRegistry(), agent=agent)
    liveness = Liveness(limit_seconds=60)
    holder = Holder(metrics=metrics, liveness=liveness, readiness=Readiness(()), longest_pause=0.1)
    letters = DeadLetters(producer, config.topics.dead_letters, agent=agent, metrics=metrics)
    return AgentContext(
        spec=config.spec(agent),
        metrics=metrics,
        liveness=liveness,
        producer=producer,
        letters=letters,
        holder=holder,
        tracing=tracing,
    )
