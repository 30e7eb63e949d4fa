"""What every request passes, outermost first: `RequestEdge`, `Authenticate`, then the limits.

Pure ASGI. Authentication comes before the body is read.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexers.domain.identity import Principal
from search_api.auth import KeyRing
from search_api.metrics import ApiMetrics
from search_api.problems import MEDIA_TYPE, REQUEST_ID_HEADER, Problem

log = structlog.get_logger()

#: The only paths that answer without a key.
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
#: Key of the scope's state under which a route leaves fields for the log line.
LOG_FIELDS: Final = "log_fields"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


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
    """Request id, one log line and one observation a request; a bug becomes a 500 without its text."""

    def __init__(self, app: ASGIApp, *, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state: dict[str, Any] = scope.setdefault("state", {})
        state |= {"request_id": request_id, LOG_FIELDS: {}}
        answer = _Answer(send, request_id)
        start = time.perf_counter()
        with self._metrics.requests_in_flight.track_inprogress():
            try:
                await self._app(scope, receive, answer.send)
            except Exception:
                log.exception("request.failed", request_id=request_id, route=_route(scope))
                await self._internal_error(answer, request_id)
            finally:
                self._account(scope, answer.status, time.perf_counter() - start)

    async def _internal_error(self, answer: _Answer, request_id: str) -> None:
        if answer.status == 0:
            detail = "The service met a fault of its own; its log has it under this request id."
            await send_problem(answer.send, Problem(kind="internal-error", detail=detail), request_id)

    def _account(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        self._metrics.request_seconds.labels(route=route, status=str(status)).observe(seconds)
        if route in OPEN_PATHS:
            return
        state = scope["state"]
        principal: Principal | None = state.get("principal")
        log.info(
            "request.answered",
            route=route,
            status=status,
            seconds=round(seconds, 4),
            request_id=state["request_id"],
            tenant=None if principal is None else principal.tenant_id,
            agent=None if principal is None else principal.agent_id,
            **state[LOG_FIELDS],
        )


class Authenticate:
    """Puts the principal into the scope's state, or answers 401; unknown paths included."""

    def __init__(self, app: ASGIApp, *, keys: KeyRing, metrics: ApiMetrics) -> None:
        self._app = app
        self._keys = keys
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        value = header(scope, b"authorization")
        principal = self._keys.principal_of(None if value is None else value.decode("latin-1"))
        if principal is None:
            self._metrics.problems.labels(kind="unauthorized").inc()
            await send_problem(send, _UNAUTHORIZED, scope["state"]["request_id"])
            return
        scope["state"]["principal"] = principal
        await self._app(scope, receive, send)


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


_UNAUTHORIZED: Final = Problem(
    kind="unauthorized",
    detail="Give a key that this service knows: `Authorization: Bearer KEY`.",
    headers={"www-authenticate": 'Bearer realm="hopline"'},
)


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
