"""What every request with a known key passes: `RateLimit`, `BodyLimit`, then `Deadline`.

Pure ASGI. The body is read whole (it is small by the limit) before a route sees the request, so that an endless
body never reaches a parser.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from search_api.edge import WITHIN_MCP, header, send_problem
from search_api.metrics import ApiMetrics
from search_api.problems import Problem, ProblemError, unavailable
from search_api.quotas import Quotas

_CLOSE: Final = {"connection": "close"}


class RateLimit:
    """Counts the request against its tenant's limit before a byte of its body is read; over it answers 429."""

    def __init__(self, app: ASGIApp, *, quotas: Quotas, metrics: ApiMetrics) -> None:
        self._app = app
        self._quotas = quotas
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope["state"].get("principal") if scope["type"] == "http" else None
        if principal is not None and WITHIN_MCP not in scope["state"]:
            try:
                self._quotas.take_request(principal)
            except ProblemError as refused:
                self._metrics.problems.labels(kind=refused.problem.kind).inc()
                await send_problem(send, refused.problem, scope["state"]["request_id"])
                return
        await self._app(scope, receive, send)


class BodyLimit:
    """Reads the body, counting; over the limit it answers 413 and reads no further."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, timeout_seconds: float, metrics: ApiMetrics) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_seconds = timeout_seconds
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._timeout_seconds):
                body = await self._read(scope, receive)
        except TimeoutError:
            detail = f"The body did not arrive within {self._timeout_seconds:g} s."
            await self._refuse(scope, send, Problem(kind="request-timeout", detail=detail, headers=_CLOSE))
            return
        except _TooLargeError:
            detail = f"The body is larger than {self._max_bytes} bytes."
            await self._refuse(scope, send, Problem(kind="body-too-large", detail=detail, headers=_CLOSE))
            return
        if body is not None:
            await self._app(scope, replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """None when the client left."""
        declared = header(scope, b"content-length") or b""
        # More than 18 digits is too large, whatever the number; int() refuses thousands of digits.
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._max_bytes):
            raise _TooLargeError
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                raise _TooLargeError
            if not message.get("more_body", False):
                return bytes(body)

    async def _refuse(self, scope: Scope, send: Send, problem: Problem) -> None:
        self._metrics.problems.labels(kind=problem.kind).inc()
        await send_problem(send, problem, scope["state"]["request_id"])


class Deadline:
    """Ends a request that takes too long with 503, unless its answer has begun."""

    def __init__(self, app: ASGIApp, *, timeout_seconds: float, metrics: ApiMetrics) -> None:
        self._app = app
        self._timeout_seconds = timeout_seconds
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        limit = asyncio.timeout(self._timeout_seconds)
        try:
            async with limit:
                await self._app(scope, receive, noting)
        except TimeoutError:
            if begun or not limit.expired():
                raise
            self._metrics.problems.labels(kind="too-slow").inc()
            detail = f"No answer within {self._timeout_seconds:g} s; the store may be overloaded."
            await send_problem(send, unavailable("too-slow", detail), scope["state"]["request_id"])


class _TooLargeError(Exception):
    pass


def replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, and what follows it."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
