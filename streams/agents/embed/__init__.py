"""The embed agent: chunked documents → chunk rows with vectors.

It writes one generation of chunks. While another model's is filled beside it, a second group of the same agent writes
that (docs/explanation/reindex.md).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import structlog

from indexers.domain.chunking import chunker_version
from indexers.embedders.factory import load_embedder
from indexers.errors import ConfigurationError, Transient
from indexers.opensearch.gate import Gate
from indexers.opensearch.generations import Generation, Generations
from indexers.opensearch.retry import RetryPolicy
from indexers.ports import Embedder
from indexers.process_metrics import process_registry, tell_version
from indexers.taken_embedder import note_taken, taken
from indexers.watched import WatchedEmbedder
from streams.agents.config import AgentConfig, open_gate
from streams.agents.embed.handler import EmbedHandler, Prepared
from streams.agents.embed.model import Model
from streams.agents.progress import Progress
from streams.context import AgentContext
from streams.health import Verdict, serve_health
from streams.worker import Stopping, run_agent

#: Between two looks at which generation is this group's.
LOOK_SECONDS = 2.0
_log = structlog.get_logger("hopline.streams.embed")


async def run(config: AgentConfig, *, second: bool = False, wait: bool = False) -> None:
    """Until SIGTERM or SIGINT, or until the generation that this group writes is no longer its own.

    `second`: the group of an open reindex. Where none is open it returns at once, or with `wait` when one has opened
    and ended: what restarts it (Kubernetes) would otherwise do so for ever.
    """
    spec = config.spec("embed")
    if second:
        number = await (next_reindex(config) if wait else _fed(config))
        if number is None:
            _log.info("embed.no_reindex_is_open")
            return
        spec = replace(spec, part=second_group_part(number))
    await run_agent(spec, lambda context: open_handler(config, context, second=second))


def second_group_part(number: int) -> str:
    """What the second group's name has after the agent's."""
    return f"-{number}"


@asynccontextmanager
async def open_handler(
    config: AgentConfig, context: AgentContext, *, second: bool = False
) -> AsyncIterator[EmbedHandler]:
    with (
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="model") as model_thread,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="vault") as files,
    ):
        async with open_gate(config, context) as gate:
            known = await context.hold("opensearch", gate.generations)
            settings = taken(config.embedder, known, _own(known, second=second))
            note_taken(config.embedder, settings)
            loaded = await asyncio.to_thread(load_embedder, settings)
            embedder = WatchedEmbedder(embedder=loaded, observe=context.metrics.model.observe)
            own = await context.hold("opensearch", lambda: _ensured(gate, embedder, second=second))
            view = gate.of_chunks(own.number)
            progress = Progress(gate=view, context=context)
            context.after_park.append(progress.failed)
            handler = EmbedHandler(
                gate=view,
                vaults=config.open_vaults(),
                model=Model(embedder=embedder, executor=model_thread, beat=context.beat),
                settings=config.indexing,
                context=context,
                progress=progress,
                files=files,
            )
            handler.chunker = _chunker(own, handler)
            watching = asyncio.create_task(_watch(gate, own.number, handler, second=second))
            try:
                yield handler
            finally:
                watching.cancel()


def _own(known: Generations, *, second: bool) -> Generation | None:
    return known.fed if second else known.old


async def _ensured(gate: Gate, embedder: Embedder, *, second: bool) -> Generation:
    await gate.ensure_indices(
        dimension=embedder.dimension, pair_id=embedder.pair_id, cosine_floor=embedder.cosine_floor
    )
    own = _own(await gate.generations(), second=second)
    if own is None:
        msg = "the chunks' generation is not there"
        raise Transient(msg)
    if own.space.pair_id != embedder.pair_id:
        by = (
            "the model that made it"
            if own.made_by is None
            else f"{own.made_by.model or own.made_by.model_id}"
        )
        msg = (
            f"generation {own.number} of the chunks holds vectors of {own.space.pair_id}, but this worker has"
            f" {embedder.pair_id}: make {by} readable here (HOPLINE_EMBEDDER__MODEL), or end the reindex"
        )
        raise ConfigurationError(msg)
    return own


async def _watch(gate: Gate, number: int, handler: EmbedHandler, *, second: bool) -> None:
    """Another model can't be loaded into a batch under way: the process ends, and its next start sees the new state."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        with suppress(Transient):
            known = await gate.generations()
            own = _own(known, second=second)
            if own is not None and own.number == number:
                handler.chunker = _chunker(own, handler)
            elif known.all:
                break
    _log.warning("embed.generation_gone", generation=number, reindex_open=known.fed is not None)
    # Twice: what is in flight can't be stored any more, and comes again.
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(LOOK_SECONDS)


def _chunker(own: Generation, handler: EmbedHandler) -> str | None:
    """Where a reindex has noted what cuts this generation's chunks, and this worker cuts likewise."""
    cuts = chunker_version(handler.model.embedder, handler.settings.chunk_max_tokens)
    return cuts if own.made_by is not None and own.made_by.chunker == cuts else None


async def _fed(config: AgentConfig) -> int | None:
    gate = config.gate(RetryPolicy())
    try:
        fed = (await gate.generations()).fed
        return None if fed is None else fed.number
    finally:
        await gate.close()


async def next_reindex(config: AgentConfig) -> int | None:
    """The open reindex's generation, or the next one's; None where a stop was asked for first. Probes are answered."""
    agent, stopping = config.agent, Stopping()
    nothing = Verdict(ok=True, reason="waits for a reindex: none is open")
    registry = process_registry()
    tell_version(registry)
    with stopping.on_signals():
        async with serve_health(
            agent.http_host, agent.http_port, registry, live=lambda: nothing, ready=lambda: nothing
        ):
            _log.info("embed.waits_for_reindex")
            while not stopping.asked.is_set():
                with suppress(Transient):
                    if (number := await _fed(config)) is not None:
                        return number
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopping.asked.wait(), LOOK_SECONDS)
    return None


__all__ = ["EmbedHandler", "Prepared", "next_reindex", "open_handler", "run", "second_group_part"]
