"""What the query service answers to admins, typed. Fields that a newer service adds are ignored."""

from __future__ import annotations

from typing import Any

import msgspec

from hopline.answers import Paged


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret. Times: ISO 8601."""

    key_id: str
    tenant: str
    agent: str
    teams: list[str]
    roles: list[str]
    name: str
    state: str
    created_at: str
    created_by: str
    rotated_at: str | None
    grace_until: str | None
    expires_at: str | None
    revoked_at: str | None


class NewKey(Key, frozen=True, kw_only=True):
    """`key` is told this once."""

    key: str


class KeyPage(Paged, frozen=True, kw_only=True):
    keys: list[Key]


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """`limits`: what is otherwise for it than for all."""

    tenant: str
    state: str
    note: str
    limits: dict[str, Any]
    limits_in_force: dict[str, Any]
    created_at: str
    created_by: str


class TenantPage(Paged, frozen=True, kw_only=True):
    tenants: list[Tenant]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    entry_id: str
    at: str
    by_tenant: str
    by_agent: str
    by_key: str | None
    action: str
    outcome: str
    target: str
    request_id: str
    detail: dict[str, str]


class AuditPage(Paged, frozen=True, kw_only=True):
    """Newest first."""

    entries: list[AuditEntry]


class Whoami(msgspec.Struct, frozen=True, kw_only=True):
    """`operator`: manages tenants and keys, and has no memory of its own."""

    tenant: str
    agent: str
    teams: list[str]
    roles: list[str]
    source: str
    key_id: str | None
    expires_at: str | None
    operator: bool
