"""The requests of admins as values, for `HoplineClient.call` and its async twin. Pure.

Making and rotating a key are the only calls that should not be repeated by themselves: each makes another secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hopline.admin_answers import AuditPage, Key, KeyPage, NewKey, Tenant, TenantPage, Whoami
from hopline.calls import Call, given
from hopline.erasure_calls import Erasure


def create_key(
    agent: str,
    *,
    tenant: str | None = None,
    teams: Sequence[str] = (),
    roles: Sequence[str] = ("agent",),
    name: str = "",
    expires_at: str | None = None,
) -> Call[NewKey]:
    """`tenant`: an operator names it. `expires_at`: ISO 8601."""
    body: dict[str, Any] = given(agent=agent, tenant=tenant, expires_at=expires_at)
    body |= {"teams": list(teams), "roles": list(roles), "name": name}
    return Call(method="POST", path="/v1/admin/keys", answer=NewKey, json=body)


def keys(
    *, tenant: str | None = None, page_size: int | None = None, cursor: str | None = None
) -> Call[KeyPage]:
    params = given(tenant=tenant, page_size=page_size, cursor=cursor)
    return Call(method="GET", path="/v1/admin/keys", answer=KeyPage, params=params)


def rotate_key(key_id: str, *, grace_seconds: int = 0) -> Call[NewKey]:
    params = given(grace_seconds=grace_seconds)
    return Call(method="POST", path=f"{_key_path(key_id)}/rotate", answer=NewKey, params=params)


def revoke_key(key_id: str) -> Call[Key]:
    return Call(method="DELETE", path=_key_path(key_id), answer=Key)


def create_tenant(tenant: str, *, note: str = "", limits: Mapping[str, Any] | None = None) -> Call[Tenant]:
    body = {"tenant": tenant, "note": note, "limits": dict(limits or {})}
    return Call(method="POST", path="/v1/admin/tenants", answer=Tenant, json=body)


def tenants(*, page_size: int | None = None, cursor: str | None = None) -> Call[TenantPage]:
    params = given(page_size=page_size, cursor=cursor)
    return Call(method="GET", path="/v1/admin/tenants", answer=TenantPage, params=params)


def tenant(name: str) -> Call[Tenant]:
    return Call(method="GET", path=_tenant_path(name), answer=Tenant)


def change_tenant(name: str, **changes: Any) -> Call[Tenant]:
    """`suspended`, `note`, `limits` (all of its own, in place of those before)."""
    return Call(method="PUT", path=_tenant_path(name), answer=Tenant, json=changes)


def erase_tenant(name: str) -> Call[Erasure]:
    """The next thousand documents; `more`: to be repeated."""
    return Call(method="POST", path=f"{_tenant_path(name)}/erase", answer=Erasure)


def audit(
    *, tenant: str | None = None, page_size: int | None = None, cursor: str | None = None
) -> Call[AuditPage]:
    params = given(tenant=tenant, page_size=page_size, cursor=cursor)
    return Call(method="GET", path="/v1/admin/audit", answer=AuditPage, params=params)


def whoami() -> Call[Whoami]:
    """Whom the service takes the key's holder for."""
    return Call(method="GET", path="/v1/whoami", answer=Whoami)


def _key_path(key_id: str) -> str:
    return f"/v1/admin/keys/{quote(key_id, safe='')}"


def _tenant_path(name: str) -> str:
    return f"/v1/admin/tenants/{quote(name, safe='')}"
