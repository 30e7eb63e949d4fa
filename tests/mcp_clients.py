"""The official MCP client against the application of a test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from hopline.local_key import write_local_key
from indexers.domain.identity import Principal
from search_api.mcp.rest import Rest
from search_api.mcp.server import build_server
from tests.api import Service, bearer, key_of
from tests.pipeline import REPOSITORY

GUIDE: Final = REPOSITORY / "docs" / "how-to" / "connect-agents.md"


@contextlib.asynccontextmanager
async def in_memory(service: Service, who: Principal) -> AsyncIterator[Client]:
    transport = httpx2.ASGITransport(service.app)
    async with (
        httpx2.AsyncClient(transport=transport, base_url="http://hopline", headers=bearer(who)) as http,
        Client(build_server(Rest(http, lambda _: {}), version="test")) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def over_http(address: str, who: Principal, *, mode: str = "auto") -> AsyncIterator[Client]:
    """As the guide's configuration has it, with the service's address and the key of `who`."""
    entry = guide_entry("http")
    assert entry["type"] == "http"
    url = entry["url"].replace("http://127.0.0.1:8470", address)
    headers = {
        name: value.replace("${HOPLINE_API_KEY}", key_of(who)) for name, value in entry["headers"].items()
    }
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def over_stdio(address: str, who: Principal, folder: Path) -> AsyncIterator[Client]:
    """As the guide's configuration has it: `hopline mcp` with the local key, on the machine of `address`."""
    entry = guide_entry("stdio")
    command = shutil.which(entry["command"], path=str(Path(sys.executable).parent))
    assert command is not None
    environment = local_environment(address, who, folder) | entry.get("env", {})
    parameters = StdioServerParameters(command=command, args=entry["args"], env=environment)
    async with Client(stdio_client(parameters)) as client:
        yield client


def local_environment(address: str, who: Principal, folder: Path) -> dict[str, str]:
    """Of a shell on a machine where `hopline up` has made a key and the service listens at `address`."""
    write_local_key(folder, key_of(who))
    own = {name: value for name, value in os.environ.items() if not name.startswith("HOPLINE_")}
    return own | {
        "HOPLINE_LOCAL__DATA_DIR": str(folder),
        "HOPLINE_API__PORT": address.rpartition(":")[2],
        "PYTHONPATH": str(REPOSITORY),
    }


def guide_entry(kind: Literal["stdio", "http"]) -> dict[str, Any]:
    """The server's entry in the configuration of this kind that docs/how-to/connect-agents.md gives to agents."""
    blocks = re.findall(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    entries = [json.loads(block)["mcpServers"]["hopline"] for block in blocks]
    found: dict[str, Any]
    [found] = [entry for entry in entries if ("command" if kind == "stdio" else "url") in entry]
    return found


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
