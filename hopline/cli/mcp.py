"""`hopline mcp`: the MCP server on standard input and output, for agents on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hopline.settings import Settings


def register(app: typer.Typer) -> None:
    app.command("mcp")(mcp_command)


def mcp_command() -> None:
    """Serve MCP on standard input and output, for an agent that starts it; the key is HOPLINE_API_KEY or the local one.

    Standard output holds the protocol alone, logs go to standard error.
    """
    from hopline.settings import load_settings
    from streams.logs import configure_logging

    settings = load_settings()
    configure_logging(settings.log_level)
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    import httpx2

    from hopline.service_address import api_key, api_url, checked_url

    url, key = checked_url(api_url(settings)), api_key(settings)
    headers = {"authorization": f"Bearer {key}"}

    from hopline.client import TIMEOUT_SECONDS
    from indexers.version import VERSION
    from search_api.mcp.rest import Rest
    from search_api.mcp.server import build_server

    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS) as http:
        await build_server(Rest(http, lambda _: {}), version=VERSION).run_stdio_async()
