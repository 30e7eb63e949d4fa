"""The official MCP client against the application of a test."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from indexers.domain.identity import Principal
from search_api.mcp.rest import Rest
from search_api.mcp.server import build_server
from tests.api import Service, bearer, key_of
from tests.pipeline import REPOSITORY


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


@contextlib.asynccontextmanager
async def over_stdio(url: str, who: Principal) -> AsyncIterator[Client]:
    """`hopline mcp` as a process of its own, asking the service at this address."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HOPLINE_")}
    told = {"HOPLINE_API_URL": url, "HOPLINE_API_KEY": key_of(who), "PYTHONPATH": str(REPOSITORY)}
    command = StdioServerParameters(command=sys.executable, args=["-m", "hopline", "mcp"], env=own | told)
    async with Client(stdio_client(command)) as client:
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
