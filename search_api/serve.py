"""The process: one OpenSearch client, one model, one event loop; up until SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog
import uvicorn

from indexers.embedders.factory import load_embedder
from indexers.errors import ConfigurationError, Transient
from indexers.listening import bound_socket
from indexers.opensearch.gate import Gate
from indexers.process_metrics import process_registry
from search_api.auth import KeyRing
from search_api.metrics import ApiMetrics
from search_api.retrieval.spaces import GenerationSpaces
from search_api.served import served
from search_api.wiring import ServeSettings, opened, query_embedder
from streams.tracing import Tracing, open_tracing

log = structlog.get_logger()

_STOP_SECONDS: Final = 10
_PREPARE_SECONDS: Final = 2.0
#: New objects before the collector looks at the young: a search makes thousands, nearly all free of cycles.
_YOUNG_OBJECTS: Final = 50_000


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
    metrics, tracing = ApiMetrics(process_registry()), open_tracing(settings.tracing, service="hopline-query")
    async with (
        _closing(tracing),
        opened(settings, embedder=embedder, metrics=metrics, tracing=tracing) as (services, gate),
        served(
            services, keys=keys, api=settings.api, mcp=settings.mcp, web=settings.web, oidc=settings.oidc
        ) as app,
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
            preparing = group.create_task(_prepare(gate, services.spaces, server))
            following = group.create_task(services.open_erasures.run())
            await server.serve(sockets=[listener])
            preparing.cancel()
            following.cancel()
    failure = None if preparing.cancelled() else preparing.result()
    if failure is not None:
        raise failure
    log.info("api.stopped")


@asynccontextmanager
async def _closing(tracing: Tracing) -> AsyncIterator[None]:
    """Behind all that may still end a span."""
    try:
        yield
    finally:
        tracing.close()


def _spare_the_collector() -> None:
    """What is loaded by now stays, so no collection needs to walk it: that was a twelfth of a search's work."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


async def _prepare(gate: Gate, spaces: GenerationSpaces, server: uvicorn.Server) -> ConfigurationError | None:
    """Make missing indices once the store is there; a store of another model ends the process."""
    while True:
        try:
            await spaces.look()
            embedder = spaces.now.embedder
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
