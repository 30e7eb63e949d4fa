"""Settings of the web page."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from indexers.settings import Section


class WebSettings(Section):
    """The page is files only; what a person may do there is what their key or token may do over REST."""

    enabled: bool = Field(default=True, description="Serve the page at `/`.")
    oidc_client_id: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="Log in at the issuer of tokens (`oidc.issuer`) as this public client; empty: by key only.",
    )
    oidc_scope: str = Field(
        "openid", min_length=1, max_length=500, description="Scopes that the login asks for."
    )
