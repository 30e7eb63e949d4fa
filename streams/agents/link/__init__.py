"""The link agent: extracted mentions and curators' commands → edges, names, entities.

The only writer of a (tenant, namespace, label): all its events have one key, so one partition, so one worker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from indexers.embedders.factory import identify_model
from streams.agents.config import AgentConfig, open_gate, require_indices, settled
from streams.agents.link.handler import LinkHandler, Prepared
from streams.agents.link.journal import CurationJournal
from streams.agents.progress import Progress
from streams.context import AgentContext
from streams.worker import run_agent


async def run(config: AgentConfig) -> None:
    """Until SIGTERM or SIGINT."""
    await run_agent(config.spec("link"), lambda context: open_handler(config, context))


@asynccontextmanager
async def open_handler(config: AgentConfig, context: AgentContext) -> AsyncIterator[LinkHandler]:
    vaults = config.open_vaults()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="vault") as files:
        async with open_gate(config, context) as gate:
            own, _ = await context.hold("opensearch", lambda: settled(config, gate))
            model = identify_model(own.embedder)
            await context.hold("opensearch", lambda: require_indices(gate, model))
            progress = Progress(gate=gate, context=context)
            context.after_park.append(progress.failed)
            yield LinkHandler(
                gate=gate,
                journal=CurationJournal(vaults=vaults),
                context=context,
                progress=progress,
                files=files,
            )


__all__ = ["LinkHandler", "Prepared", "open_handler", "run"]
