"""What every request passes, outermost first: `RequestEdge`, `Authenticate`, then the limits.

Pure ASGI. Authentication comes before the body is read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexers.domain.identity import Principal
from indexers.errors import Transient
from search_api.identity.authenticator import Authenticator
from search_api.identity.refusals import Reason, Refused
from search_api.metrics import ApiMetrics
from search_api.problems import MEDIA_TYPE, REQUEST_ID_HEADER, Problem, store_away
from streams.tracing import HEADER, OFF, Span, Tracing

log = structlog.get_logger()

#: The only paths that answer without a key.
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
#: Key of the scope's state, set on what an MCP tool asks: its own call was counted. No header can set it.
WITHIN_MCP: Final = "within_mcp"
#: Key of the scope's state under which a route leaves fields for the log line.
LOG_FIELDS: Final = "log_fields"
#: Key of the scope's state: what the audit log says of a request that is refused, unless with a plain 403.
DENIED: Final = "denied"
#: Key of the scope's state: headers that carry the request's trace on, none where traces are off.
TRACE: Final = "trace"
#: Told of the route's pattern.
OnDenied = Callable[[Scope, str], None]
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def tell_nobody(_scope: Scope, _route: str) -> None:
    """For who keeps no audit log."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The only value of a header; None when it is missing or given twice."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0] if len(values) == 1 else None


async def send_problem(send: Send, problem: Problem, request_id: str) -> None:
    body = problem.body(request_id)
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class RequestEdge:
    """Request id, one log line, one observation and one span a request; a bug becomes a 500 without its text."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: ApiMetrics,
        on_denied: OnDenied = tell_nobody,
        tracing: Tracing = OFF,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._on_denied = on_denied
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state: dict[str, Any] = scope.setdefault("state", {})
        state |= {"request_id": request_id, LOG_FIELDS: {}}
        answer = _Answer(send, request_id)
        start = time.perf_counter()
        with self._metrics.requests_in_flight.track_inprogress(), self._span(scope) as span:
            state[TRACE] = {name: value.decode() for name, value in self._tracing.headers()}
            try:
                await self._app(scope, receive, answer.send)
            except Exception:
                log.exception("request.failed", request_id=request_id, route=_route(scope))
                await self._internal_error(answer, request_id)
            finally:
                self._account(scope, answer.status, time.perf_counter() - start, span)

    def _span(self, scope: Scope) -> AbstractContextManager[Span]:
        """Continues the caller's trace. Probes and scrapes are none of a memory's way."""
        if scope["path"] in OPEN_PATHS:
            return OFF.span(scope["path"], kind="server")
        led = header(scope, HEADER.encode())
        before = [] if led is None else [led.decode("latin-1")]
        return self._tracing.span(scope["method"], kind="server", before=before)

    async def _internal_error(self, answer: _Answer, request_id: str) -> None:
        if answer.status == 0:
            detail = "The service met a fault of its own; its log has it under this request id."
            await send_problem(answer.send, Problem(kind="internal-error", detail=detail), request_id)

    def _account(self, scope: Scope, status: int, seconds: float, span: Span) -> None:
        route = _route(scope)
        self._metrics.request_seconds.labels(route=route, status=str(status)).observe(seconds)
        if route in OPEN_PATHS:
            return
        state = scope["state"]
        if status == 403 or DENIED in state:
            self._on_denied(scope, route)
        principal: Principal | None = state.get("principal")
        asker = {} if principal is None else {"tenant": principal.tenant_id, "agent": principal.agent_id}
        facts = {"route": route, "status": status, "request_id": state["request_id"], **asker}
        span.tell(facts, name=f"{scope['method']} {route}")
        log.info(
            "request.answered",
            route=route,
            status=status,
            seconds=round(seconds, 4),
            request_id=state["request_id"],
            tenant=asker.get("tenant"),
            agent=asker.get("agent"),
            **({} if span.trace_id is None else {"trace_id": span.trace_id}),
            **state[LOG_FIELDS],
        )


class Authenticate:
    """Puts the asker into the scope's state, or answers 401; unknown paths included."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, metrics: ApiMetrics) -> None:
        self._app = app
        self._authenticator = authenticator
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        value = header(scope, b"authorization")
        try:
            identity = await self._authenticator.identify(None if value is None else value.decode("latin-1"))
        except Refused as refused:
            await self._refuse(scope, send, refused.reason, refused.problem)
            return
        except Transient as fault:
            log.warning("store.unavailable", reason=fault.reason, request_id=scope["state"]["request_id"])
            await self._refuse(scope, send, "unavailable", store_away(fault.retry_after))
            return
        scope["state"] |= {"principal": identity.principal, "identity": identity}
        await self._app(scope, receive, send)

    async def _refuse(self, scope: Scope, send: Send, reason: Reason, problem: Problem) -> None:
        self._metrics.auth_failures.labels(reason=reason).inc()
        self._metrics.problems.labels(kind=problem.kind).inc()
        await send_problem(send, problem, scope["state"]["request_id"])


class _Answer:
    """Adds the request id to the answer's head and remembers its status (0: none yet)."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = (REQUEST_ID_HEADER.encode(), self._request_id.encode())
            message = {**message, "headers": [*message.get("headers", ()), own]}
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """The caller's own where it is harmless, so that a call can be followed through several services."""
    given = header(scope, REQUEST_ID_HEADER.encode())
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return str(uuid4())


def _route(scope: Scope) -> str:
    """The route's pattern, never the path: a closed set."""
    route = scope.get("route")
    path = getattr(route, "path", None)
    if isinstance(path, str):
        return path
    return scope["path"] if scope["path"] in OPEN_PATHS else "other"
