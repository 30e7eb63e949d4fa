"""The ingest agent: file changes, memory writes → document rows, edges, the word to the later agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace

from indexers.embedders.factory import identify_model, load_token_counter
from indexers.planning import IndexVersions
from streams.agents.config import AgentConfig, open_gate, require_indices, settled
from streams.agents.ingest.handler import IngestHandler, Prepared
from streams.agents.ingest.materialise import Materialise
from streams.agents.ingest.memories import Memories
from streams.agents.ingest.plan import Planner
from streams.agents.ingest.relations import Relations
from streams.agents.ingest.statements import Journals
from streams.agents.progress import Progress
from streams.context import AgentContext
from streams.worker import run_agent

#: Room for key, headers and the batch around one record.
RECORD_MARGIN_BYTES = 4_096
#: Of a burst, the models of the later agents begin with these while the rest is read: a batch of 200 takes seconds.
FIRST_RECORDS = 16
#: Memories that become files at once.
WRITERS = 8


async def run(config: AgentConfig) -> None:
    """Until SIGTERM or SIGINT."""
    spec = replace(config.spec("ingest"), first_records=FIRST_RECORDS)
    await run_agent(spec, lambda context: open_handler(config, context))


@asynccontextmanager
async def open_handler(config: AgentConfig, context: AgentContext) -> AsyncIterator[IngestHandler]:
    vaults = config.open_vaults()
    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="ingest") as executor,
        ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="write") as writers,
    ):
        async with open_gate(config, context) as gate:
            own, known = await context.hold("opensearch", lambda: settled(config, gate))
            counter = await asyncio.to_thread(load_token_counter, own.embedder)
            model = identify_model(own.embedder)
            versions = IndexVersions.of(counter, model.model_id, config.indexing, known)
            await context.hold("opensearch", lambda: require_indices(gate, model))
            progress = Progress(gate=gate, context=context)
            context.after_park.append(progress.failed)
            memories = Memories(vaults=vaults, settings=config.indexing)
            journals = Journals(vaults=vaults, cap_bytes=config.indexing.document_max_bytes)
            yield IngestHandler(
                gate=gate,
                vaults=vaults,
                memories=memories,
                materialise=Materialise(context=context, memories=memories, writers=writers),
                progress=progress,
                topics=config.topics,
                planner=Planner(counter=counter, settings=config.indexing, versions=versions),
                relations=Relations(gate=gate, context=context, journals=journals, executor=executor),
                context=context,
                executor=executor,
                inline_max_bytes=config.indexing.inline_max_bytes,
                event_max_bytes=config.kafka.max_message_bytes - RECORD_MARGIN_BYTES,
            )


__all__ = ["IngestHandler", "Prepared", "open_handler", "run"]
