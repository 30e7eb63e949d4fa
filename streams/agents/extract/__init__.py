"""The extract agent: texts of documents → mentions of the namespace's labels, told to link."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from indexers.domain.identity import EntityNamespace
from indexers.embedders.factory import identify_model
from indexers.errors import Transient, VaultUnavailable
from indexers.extracted import extraction_progress
from indexers.extractors.factory import load_extractor
from indexers.opensearch.gate import Gate
from indexers.settings import VaultRoot
from streams.agents.config import AgentConfig, open_gate, require_indices, settled
from streams.agents.extract.handler import ExtractHandler, Prepared
from streams.agents.extract.model import Model, Watched
from streams.agents.progress import Progress
from streams.context import AgentContext
from streams.extract_requests import request_record
from streams.worker import run_agent

#: Room for key, headers and the batch around one record.
RECORD_MARGIN_BYTES = 4_096
#: How long the model's thread waits between two calls for one that runs Python (rules, Kafka). A call takes 10 ms: the
#: interpreter's own 5 ms would cost half of it.
SWITCH_SECONDS = 0.0005
#: While the model is at one batch, labels, versions and texts of the next are looked up.
BATCHES_PREPARING = 2
_log = structlog.get_logger("hopline.streams.extract")


async def run(config: AgentConfig) -> None:
    """Until SIGTERM or SIGINT."""
    sys.setswitchinterval(SWITCH_SECONDS)
    spec = replace(config.spec("extract"), preparing=BATCHES_PREPARING)
    await run_agent(spec, lambda context: open_handler(config, context))


@asynccontextmanager
async def open_handler(config: AgentConfig, context: AgentContext) -> AsyncIterator[ExtractHandler]:
    vaults = config.open_vaults()
    extractor = await asyncio.to_thread(load_extractor, config.extractor)
    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="model") as model_thread,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="rules") as rules,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="vault") as files,
    ):
        async with open_gate(config, context) as gate:
            own, _ = await context.hold("opensearch", lambda: settled(config, gate))
            embedder = identify_model(own.embedder)
            await context.hold("opensearch", lambda: require_indices(gate, embedder))
            roots = await context.hold("vault", lambda: asyncio.to_thread(_all_roots, config))
            await ask_for_outdated(gate, context, roots, extractor.model_id)
            progress = Progress(gate=gate, context=context)
            context.after_park.append(progress.failed)
            yield ExtractHandler(
                gate=gate,
                vaults=vaults,
                model=Model(
                    extractor=Watched(extractor=extractor, context=context),
                    executor=model_thread,
                    rules=rules,
                    batch_windows=config.extractor.batch_windows,
                ),
                context=context,
                progress=progress,
                files=files,
                document_max_bytes=config.indexing.document_max_bytes,
                event_max_bytes=config.kafka.max_message_bytes - RECORD_MARGIN_BYTES,
            )


def _all_roots(config: AgentConfig) -> tuple[VaultRoot, ...]:
    """Raises Transient while the memory tree is away."""
    try:
        return config.vault_tree.all_roots
    except VaultUnavailable as exc:
        raise Transient(str(exc)) from exc


async def ask_for_outdated(
    gate: Gate, context: AgentContext, roots: Sequence[VaultRoot], model_id: str
) -> None:
    """Another model, other rules, documents that were indexed before there was this agent: extract them again.

    Where events of the same documents wait already, whichever comes second finds that there is nothing to do.
    """
    for namespace in dict.fromkeys(EntityNamespace.of(root.namespace) for root in roots):
        progress = await context.hold(
            "opensearch",
            lambda ns=namespace: extraction_progress(gate, ns, model_id),  # type: ignore[misc]
        )
        if not progress.finished:
            _log.info(
                "extraction.outdated",
                tenant=namespace.tenant_id,
                namespace=namespace.owner,
                done=progress.done,
                of=progress.total,
            )
            topics = context.spec.topics
            await context.send([request_record(topics, namespace, reason="agent_started")])


__all__ = ["ExtractHandler", "Prepared", "ask_for_outdated", "open_handler", "run"]
