"""Settings of signed tokens (OpenID Connect)."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from indexers.settings import Section

#: Signatures that only the issuer can make. `none`, and those with a shared secret, are no choice.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
Claim = Annotated[str, Field(min_length=1, max_length=200)]


class OidcSettings(Section):
    """Tokens are taken once `issuer` is set; then an audience and one source of keys are needed."""

    issuer: str | None = Field(
        None, description="Issuer of tokens, as in their `iss`; empty: no tokens are taken."
    )
    audience: str | None = Field(None, description="Audience of tokens, as in their `aud`.")
    jwks_url: str | None = Field(
        None, description="Where the issuer's keys are (JWKS): https, or http on this machine."
    )
    jwks_file: Path | None = Field(None, description="The issuer's keys as a file, instead of the address.")
    jwks_refresh_seconds: float = Field(
        900.0, ge=60, le=86_400, description="The keys are fetched anew when they are so old."
    )
    algorithms: tuple[Algorithm, ...] = Field(
        ("RS256", "ES256", "EdDSA"), min_length=1, description="Signatures that are taken."
    )
    leeway_seconds: float = Field(
        30.0, ge=0, le=600, description="So much may the issuer's clock differ from ours."
    )
    tenant_claim: Claim = Field(
        "tenant",
        description="Claim that names the tenant; `a.b`: field b of claim a, unless a claim is named so.",
    )
    agent_claim: Claim = Field("agent", description="Claim that names the agent.")
    teams_claim: Claim = Field("teams", description="Claim that lists the teams.")
    roles_claim: Claim = Field(
        "roles", description="Claim that lists the roles; others than ours are passed over."
    )
    default_roles: tuple[Literal["reader", "agent"], ...] = Field(
        ("reader",), description="Roles of a token that names none of ours."
    )
    registered_tenants_only: bool = Field(
        default=True,
        description="Refuse tokens of tenants that nobody has entered (`hopline tenants create`).",
    )

    @model_validator(mode="after")
    def _whole(self) -> OidcSettings:
        if self.issuer is None:
            return self
        if not self.audience:
            msg = "oidc.audience is needed where oidc.issuer is set: tokens for others must not count"
            raise ValueError(msg)
        if (self.jwks_url is None) == (self.jwks_file is None):
            msg = "oidc.issuer needs either oidc.jwks_url or oidc.jwks_file"
            raise ValueError(msg)
        if self.jwks_url is not None and not _is_safe(self.jwks_url):
            msg = f"oidc.jwks_url is {self.jwks_url!r}: give an https address (http on this machine only)"
            raise ValueError(msg)
        return self


def _is_safe(url: str) -> bool:
    """Whoever can change the keys on their way can sign as anybody."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            return bool(host)
        return parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False
