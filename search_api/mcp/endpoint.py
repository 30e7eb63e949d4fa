"""MCP over HTTP, at /mcp: stateless, JSON answers. Behind everything that REST requests pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2
from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from search_api.edge import TRACE, WITHIN_MCP, send_problem
from search_api.mcp.rest import Rest
from search_api.mcp.server import build_server
from search_api.mcp.settings import McpSettings
from search_api.problems import REQUEST_ID_HEADER, Problem

PATH: Final = "/mcp"


@dataclass(frozen=True, slots=True)
class _Route:
    """For the log and the metrics."""

    path: str


class McpEndpoint:
    """An ASGI application for one path. It answers while `serving` is entered."""

    def __init__(self, settings: McpSettings, *, version: str, body_max_bytes: int) -> None:
        self._settings = settings
        self._version = version
        self._body_max_bytes = body_max_bytes
        self._sessions: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def serving(self, rest: ASGIApp) -> AsyncIterator[None]:
        """`rest`: the whole application; tools ask it as their callers."""
        transport = httpx2.ASGITransport(_Within(rest))
        # No timeout: the request that a tool makes has its deadline in the application.
        async with httpx2.AsyncClient(transport=transport, base_url="http://hopline", timeout=None) as http:
            server = build_server(Rest(http, _callers_headers), version=self._version)
            server.streamable_http_app(
                json_response=True,
                stateless_http=True,
                transport_security=_security(self._settings),
                max_request_body_size=self._body_max_bytes,
            )
            async with server.session_manager.run():
                self._sessions = server.session_manager
                try:
                    yield
                finally:
                    self._sessions = None

    def before(self, inner: ASGIApp) -> ASGIApp:
        """Itself at its path, `inner` at every other."""
        return _Before(self, inner)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = _Route(PATH)
        if scope["method"] != "POST":
            # Nothing is sent but answers, and there are no sessions to end.
            detail = "This path takes another method; see `Allow`."
            problem = Problem(kind="method-not-allowed", detail=detail, headers={"allow": "POST"})
            await send_problem(send, problem, scope["state"]["request_id"])
            return
        if self._sessions is None:
            msg = "MCP is asked before it serves"
            raise RuntimeError(msg)
        await self._sessions.handle_request(scope, receive, send)


class _Before:
    def __init__(self, endpoint: McpEndpoint, inner: ASGIApp) -> None:
        self._endpoint = endpoint
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_mcp = scope["type"] == "http" and scope["path"] == PATH
        await (self._endpoint if is_mcp else self._inner)(scope, receive, send)


class _Within:
    """Marks the requests that a tool makes: its own call has been counted already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: dict[str, Any] = scope.setdefault("state", {})
        state[WITHIN_MCP] = True
        await self._app(scope, receive, send)


def _callers_headers(context: Context) -> Mapping[str, str]:
    """The key is checked again, by the same rules; id and trace tie together what comes of the call."""
    request = cast("Request", context.request_context.request)
    return {
        "authorization": request.headers["authorization"],
        REQUEST_ID_HEADER: request.state.request_id,
        **getattr(request.state, TRACE, {}),
    }


def _security(settings: McpSettings) -> TransportSecuritySettings:
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(settings.allowed_hosts),
        allowed_hosts=list(settings.allowed_hosts),
        allowed_origins=list(settings.allowed_origins),
    )
