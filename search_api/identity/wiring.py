"""The parts of identity, made once a process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from indexers.opensearch.gate import Gate
from search_api.identity.audit import Audit, opened_audit
from search_api.identity.key_text import KeyDigester
from search_api.identity.keys_admin import KeyAdministration
from search_api.identity.managed_keys import ManagedKeys
from search_api.identity.register import key_register, tenant_register
from search_api.identity.secret import InstallationSecret
from search_api.identity.settings import OidcSettings
from search_api.identity.tenants import Tenants
from search_api.identity.tenants_admin import AuditLog, TenantAdministration
from search_api.identity.tokens import TokenVerifier, token_verifier
from search_api.metrics import ApiMetrics
from search_api.settings import LimitsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityParts:
    """`tokens` None: no tokens are taken."""

    secret: InstallationSecret
    keys: ManagedKeys
    tenants: Tenants
    tokens: TokenVerifier | None
    audit: Audit
    key_admin: KeyAdministration
    tenant_admin: TenantAdministration
    audit_log: AuditLog


@asynccontextmanager
async def opened_identity(
    gate: Gate,
    secret: InstallationSecret,
    metrics: ApiMetrics,
    *,
    oidc: OidcSettings,
    limits: LimitsSettings,
    ttl_seconds: float,
) -> AsyncIterator[IdentityParts]:
    """Raises ConfigurationError for what can't work."""
    digester = KeyDigester(secret)
    key_rows, tenant_rows = key_register(gate), tenant_register(gate)
    tokens = token_verifier(oidc, ttl_seconds=ttl_seconds)
    keys = ManagedKeys(key_rows, digester, ttl_seconds=ttl_seconds)
    tenants = Tenants(tenant_rows, limits, ttl_seconds=ttl_seconds)
    async with opened_audit(gate, metrics) as audit:
        try:
            yield IdentityParts(
                secret=secret,
                keys=keys,
                tenants=tenants,
                tokens=tokens,
                audit=audit,
                key_admin=KeyAdministration(
                    key_rows, tenant_rows, digester=digester, cached=keys, audit=audit
                ),
                tenant_admin=TenantAdministration(tenant_rows, cached=tenants, defaults=limits, audit=audit),
                audit_log=AuditLog(gate, audit),
            )
        finally:
            await keys.close()
            await tenants.close()
            if tokens is not None:
                await tokens.close()
