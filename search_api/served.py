"""The whole application: REST, MCP and the web page where they are on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.types import ASGIApp

from indexers.version import VERSION
from search_api.app import create_app
from search_api.auth import KeyRing
from search_api.identity.settings import OidcSettings
from search_api.mcp.settings import McpSettings
from search_api.services import Services
from search_api.settings import ApiSettings
from search_api.web.page import WebPage
from search_api.web.settings import WebSettings


@asynccontextmanager
async def served(
    services: Services,
    *,
    keys: KeyRing,
    api: ApiSettings,
    mcp: McpSettings,
    web: WebSettings | None = None,
    oidc: OidcSettings | None = None,
) -> AsyncIterator[ASGIApp]:
    """MCP answers until the end of the context. `web`: None is no page."""
    page = None
    if web is not None and web.enabled:
        page = partial(WebPage, settings=web, oidc=oidc or OidcSettings())
    if not mcp.enabled:
        yield create_app(services, keys=keys, settings=api, page=page)
        return
    # A second and 24 MiB, which nothing else here needs.
    from search_api.mcp.endpoint import McpEndpoint

    endpoint = McpEndpoint(mcp, version=VERSION, body_max_bytes=api.body_max_bytes)
    app = create_app(services, keys=keys, settings=api, mcp=endpoint, page=page)
    async with endpoint.serving(app):
        yield app
