"""The official MCP client against the application of a test."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from indexers.domain.identity import Principal
from search_api.mcp.rest import Rest
from search_api.mcp.server import build_server
from tests.api import Service, bearer


@contextlib.asynccontextmanager
async def in_memory(service: Service, who: Principal) -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(service.app)
    async with (
        httpx2.AsyncClient(transport=transport, base_url="http://hopline", headers=bearer(who)) as http,
        Client(build_server(Rest(http, lambda _: {}), version="test")) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def over_http(url: str, who: Principal, *, mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=bearer(who)) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def texts(result: CallToolResult) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextContent)]


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, texts(result)
    found: dict[str, Any] | None = result.structured_content
    assert found is not None
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    [text] = texts(result)
    return text
