"""Settings of the MCP endpoint."""

from __future__ import annotations

from pydantic import Field

from indexers.settings import Section


class McpSettings(Section):
    enabled: bool = Field(default=True, description="Serve MCP at /mcp: 24 MiB, 1 s at start.")
    allowed_hosts: tuple[str, ...] = Field(
        ("127.0.0.1", "127.0.0.1:*", "localhost", "localhost:*", "[::1]", "[::1]:*"),
        description="Host headers that /mcp answers to (`:*`: any port), others get 421; an empty list: all.",
    )
    allowed_origins: tuple[str, ...] = Field(
        ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"),
        description="Origins of web pages that may call /mcp; who sends none always may.",
    )
