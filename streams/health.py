"""/livez, /readyz and /metrics of one worker, and the rule of liveness."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from dataclasses import dataclass, field

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from indexers.listening import bound_socket


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An answer of a probe: `reason` says why in words."""

    ok: bool
    reason: str
    details: dict[str, object] = field(default_factory=dict)


class Liveness:
    """A worker lives while work moves, while no work waits, or while it keeps trying a dependency that is away.

    What it must catch: a process that is up, has records waiting, and does nothing with them. What it must not do:
    restart every worker because the store is away.
    """

    def __init__(self, *, limit_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit_seconds
        self._clock = clock
        self._moved_at = clock()
        self._waiting: int | None = None
        self._busy = 0
        self._held: dict[str, float] = {}

    def moved(self) -> None:
        """Something was finished: a batch, a stage, a model call, a committed offset."""
        self._moved_at = self._clock()

    def waiting(self, records: int) -> None:
        """Records between the committed and the end offset, as last read. From none to some, the clock starts anew."""
        if not self._waiting and records:
            self.moved()
        self._waiting = records

    def begin(self) -> None:
        """A batch is in flight from here to `end`, whatever the broker says is waiting."""
        if not self._busy:
            self.moved()
        self._busy += 1

    def end(self) -> None:
        self._busy -= 1
        self.moved()

    def tried(self, dependency: str) -> None:
        """The dependency is away and was just asked again."""
        self._held[dependency] = self._clock()

    def reached(self, dependency: str) -> None:
        if self._held.pop(dependency, None) is not None:
            self.moved()

    @property
    def holding_on(self) -> Sequence[str]:
        return sorted(name for name, tried_at in self._held.items() if self._clock() - tried_at < self._limit)

    def verdict(self) -> Verdict:
        quiet = self._clock() - self._moved_at
        details: dict[str, object] = {
            "seconds_since_progress": round(quiet, 1),
            "waiting_records": self._waiting,
            "holding_on": list(self.holding_on),
        }
        if quiet < self._limit:
            return Verdict(ok=True, reason="making progress", details=details)
        if self.holding_on:
            return Verdict(ok=True, reason=f"waiting for {', '.join(self.holding_on)}", details=details)
        if not self._busy and not self._waiting:
            return Verdict(ok=True, reason="nothing to do", details=details)
        return Verdict(
            ok=False, reason=f"work is waiting and nothing moved for {quiet:.0f} s", details=details
        )


class Readiness:
    """Ready once every named condition was met; some may be lost again (the assignment)."""

    def __init__(self, conditions: Sequence[str]) -> None:
        self._met = dict.fromkeys(conditions, False)

    def met(self, condition: str, *, value: bool = True) -> None:
        if condition in self._met:
            self._met[condition] = value

    def verdict(self) -> Verdict:
        missing = [name for name, met in self._met.items() if not met]
        reason = f"not yet: {', '.join(missing)}" if missing else "ready"
        return Verdict(ok=not missing, reason=reason, details={"conditions": dict(self._met)})


class _Server(uvicorn.Server):
    """Signals belong to the worker: uvicorn's own handlers would end the process without a drain."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextlib.asynccontextmanager
async def serve_health(
    host: str,
    port: int,
    registry: CollectorRegistry,
    *,
    live: Callable[[], Verdict],
    ready: Callable[[], Verdict],
) -> AsyncIterator[int]:
    """Serve while inside; gives the port in use. Raises ConfigurationError where the port is taken."""
    listener = bound_socket(host, port, settings="the process's HTTP_HOST and HTTP_PORT")
    # Probes that come before the server runs wait instead of being refused.
    listener.listen(64)
    app = _application(registry, live, ready)
    config = uvicorn.Config(
        app, lifespan="off", access_log=False, log_config=None, timeout_graceful_shutdown=2
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await asyncio.wait([serving], timeout=5)
            serving.cancel()
            listener.close()


def _application(
    registry: CollectorRegistry, live: Callable[[], Verdict], ready: Callable[[], Verdict]
) -> Starlette:
    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    async def livez(_: Request) -> Response:
        return _answer(live())

    async def readyz(_: Request) -> Response:
        return _answer(ready())

    return Starlette(routes=[Route("/metrics", metrics), Route("/livez", livez), Route("/readyz", readyz)])


def _answer(verdict: Verdict) -> JSONResponse:
    body = {"ok": verdict.ok, "reason": verdict.reason, **verdict.details}
    return JSONResponse(body, status_code=200 if verdict.ok else 503)
