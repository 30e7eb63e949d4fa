"""What the agents need of the settings, and the gate as each of them holds it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from indexers.embedders.factory import ModelIdentity
from indexers.errors import ConfigurationError, Transient
from indexers.opensearch.gate import Gate, Observer, ignore_fact
from indexers.opensearch.generations import Generations
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import (
    EmbedderSettings,
    ExtractorSettings,
    IndexingSettings,
    OpenSearchSettings,
    VaultRoot,
)
from indexers.taken_embedder import taken_for_live
from indexers.vault.tree import VaultTree
from streams.agents.vaults import Vaults
from streams.context import AgentContext, AgentSpec
from streams.settings import AgentSettings, KafkaSettings, TracingSettings
from streams.topics import Topics

#: Tries inside one request of the gate; beyond them the whole stage is held and shown as held.
GATE_ATTEMPTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    prefix: str
    roots: tuple[VaultRoot, ...]
    kafka: KafkaSettings
    kafka_servers: str
    opensearch: OpenSearchSettings
    opensearch_url: str
    embedder: EmbedderSettings
    extractor: ExtractorSettings
    indexing: IndexingSettings
    agent: AgentSettings
    #: Vaults of the namespaces without a root of their own (`memories.folder`); None: there are none.
    memories: Path | None = None
    tracing: TracingSettings = field(default_factory=TracingSettings)

    @property
    def topics(self) -> Topics:
        return Topics(self.prefix)

    def spec(self, name: str) -> AgentSpec:
        return AgentSpec(
            name=name,
            topics=self.topics,
            kafka=self.kafka,
            servers=self.kafka_servers,
            settings=self.agent,
            tracing=self.tracing,
        )

    @property
    def vault_tree(self) -> VaultTree:
        """ConfigurationError where two roots claim one namespace: their paths would be the same documents."""
        return VaultTree(self.roots, self.memories)

    def open_vaults(self) -> Vaults:
        return Vaults(files=self.vault_tree, patience_seconds=self.agent.vault_patience_seconds)

    def gate(self, retry: RetryPolicy, observe: Observer = ignore_fact) -> Gate:
        return gate_at(self.opensearch_url, self.opensearch, prefix=self.prefix, retry=retry, observe=observe)


@asynccontextmanager
async def open_gate(config: AgentConfig, context: AgentContext) -> AsyncIterator[Gate]:
    """Rows are counted; so are waits inside a request, which liveness sees as tries."""

    def on_wait(_reason: str, _seconds: float) -> None:
        context.metrics.retries.labels(dependency="opensearch").inc()
        context.liveness.tried("opensearch")

    retry = RetryPolicy(attempts=GATE_ATTEMPTS, on_wait=on_wait)
    gate = config.gate(retry, context.metrics.store.observe)
    try:
        yield gate
    finally:
        await gate.close()


async def settled(config: AgentConfig, gate: Gate) -> tuple[AgentConfig, Generations]:
    """With the embedder of what is searched: after a reindex the index's word stands above the settings'."""
    embedder, known = await taken_for_live(config.embedder, gate)
    return replace(config, embedder=embedder), known


async def require_indices(gate: Gate, model: ModelIdentity) -> None:
    """Make what is missing. Raises Transient while only the embed agent can tell the vectors' dimension."""
    if model.dimension is not None:
        await gate.ensure_indices(
            dimension=model.dimension, pair_id=model.pair_id, cosine_floor=model.cosine_floor
        )
        return
    space = await gate.vector_space()
    if not space.pair_id:
        msg = "the indices are not there yet; the embed agent makes them"
        raise Transient(msg)
    if space.pair_id != model.pair_id:
        msg = (
            f"the index holds vectors of {space.pair_id}, but the configured embedder makes those of "
            f"{model.pair_id}: set HOPLINE_EMBEDDER__MODEL back, or run `hopline rebuild`"
        )
        raise ConfigurationError(msg)
