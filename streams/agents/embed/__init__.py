"""The embed agent: chunked documents → chunk rows with vectors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from indexers.embedders.factory import load_embedder
from indexers.watched import WatchedEmbedder
from streams.agents.config import AgentConfig, open_gate
from streams.agents.embed.handler import EmbedHandler, Prepared
from streams.agents.embed.model import Model
from streams.agents.progress import Progress
from streams.context import AgentContext
from streams.worker import run_agent


async def run(config: AgentConfig) -> None:
    """Until SIGTERM or SIGINT."""
    await run_agent(config.spec("embed"), lambda context: open_handler(config, context))


@asynccontextmanager
async def open_handler(config: AgentConfig, context: AgentContext) -> AsyncIterator[EmbedHandler]:
    loaded = await asyncio.to_thread(load_embedder, config.embedder)
    embedder = WatchedEmbedder(embedder=loaded, observe=context.metrics.model.observe)
    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="model") as model_thread,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="vault") as files,
    ):
        async with open_gate(config, context) as gate:
            await context.hold(
                "opensearch",
                lambda: gate.ensure_indices(
                    dimension=embedder.dimension,
                    pair_id=embedder.pair_id,
                    cosine_floor=embedder.cosine_floor,
                ),
            )
            progress = Progress(gate=gate, context=context)
            context.after_park.append(progress.failed)
            yield EmbedHandler(
                gate=gate,
                vaults=config.open_vaults(),
                model=Model(embedder=embedder, executor=model_thread, beat=context.beat),
                settings=config.indexing,
                context=context,
                progress=progress,
                files=files,
            )


__all__ = ["EmbedHandler", "Prepared", "open_handler", "run"]
