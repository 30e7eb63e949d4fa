"""The whole application: REST, and MCP where it is on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from indexers.version import VERSION
from search_api.app import create_app
from search_api.auth import KeyRing
from search_api.mcp.settings import McpSettings
from search_api.services import Services
from search_api.settings import ApiSettings


@asynccontextmanager
async def served(
    services: Services, *, keys: KeyRing, api: ApiSettings, mcp: McpSettings
) -> AsyncIterator[ASGIApp]:
    """MCP answers until the end of the context."""
    if not mcp.enabled:
        yield create_app(services, keys=keys, settings=api)
        return
    # A second and 24 MiB, which nothing else here needs.
    from search_api.mcp.endpoint import McpEndpoint

    endpoint = McpEndpoint(mcp, version=VERSION, body_max_bytes=api.body_max_bytes)
    app = create_app(services, keys=keys, settings=api, mcp=endpoint)
    async with endpoint.serving(app):
        yield app
