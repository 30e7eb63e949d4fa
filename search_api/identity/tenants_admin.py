"""Tenants entered, listed and changed by operators; and the audit log of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from indexers.domain.identity import INSTALLATION, Principal, TenantId
from indexers.opensearch.gate import Gate, SearchHit
from indexers.opensearch.rows import Index
from search_api.identity.audit import KIND, Actor, Audit
from search_api.identity.models import (
    AuditAnswer,
    AuditLine,
    TenantAnswer,
    TenantBody,
    TenantChange,
    TenantsAnswer,
)
from search_api.identity.register import Entry, Register
from search_api.identity.rights import (
    is_operator,
    managed_tenant,
    require_admin,
    require_operator,
    visible_tenant,
)
from search_api.identity.stored import StoredTenant
from search_api.identity.tenants import Tenants
from search_api.paging import RowList, SortKey, read_page
from search_api.problems import Problem, ProblemError, invalid_field, no_such
from search_api.settings import LimitsSettings


class TenantAdministration:
    """Raises ProblemError; Transient where the store is away."""

    def __init__(
        self,
        register: Register[StoredTenant],
        *,
        cached: Tenants,
        defaults: LimitsSettings,
        audit: Audit,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._register = register
        self._cached = cached
        self._defaults = defaults
        self._audit = audit
        self._now = now

    async def create(self, actor: Actor, body: TenantBody) -> TenantAnswer:
        require_operator(actor.principal)
        if body.tenant == INSTALLATION:
            text = "this name is the installation's own: give another one"
            raise ProblemError(invalid_field("body.tenant", text))
        tenant = StoredTenant(
            tenant=body.tenant,
            note=body.note,
            limits=_said(body.limits),
            created_at=self._now(),
            created_by=f"{actor.principal.tenant_id}/{actor.principal.agent_id}",
        )
        if not await self._register.add(self._entry(actor, tenant)):
            detail = "There is a tenant of this name already, or there was one."
            raise ProblemError(Problem(kind="admin-conflict", detail=detail))
        self._cached.forget(tenant.tenant)
        self._audit.record(
            actor, "tenant.create", target=tenant.tenant, tenant=tenant.tenant, detail=_told(tenant)
        )
        return self._answer(tenant)

    async def list(self, actor: Actor, *, cursor: str | None, page_size: int) -> TenantsAnswer:
        """All for an operator; for another admin the own."""
        require_admin(actor.principal)
        if not is_operator(actor.principal):
            own = await self._register.read(actor.principal.tenant_id)
            shown = [] if own is None else [self._answer(own.value)]
            return TenantsAnswer(tenants=shown, next_cursor=None)
        found, next_cursor = await self._register.page(
            "", cursor=cursor, size=page_size, asker=actor.principal
        )
        return TenantsAnswer(tenants=[self._answer(tenant) for tenant in found], next_cursor=next_cursor)

    async def get(self, actor: Actor, name: str) -> TenantAnswer:
        found = await self._register.read(visible_tenant(actor, self._audit, name))
        if found is None:
            raise no_such("tenant")
        return self._answer(found.value)

    async def change(self, actor: Actor, name: str, body: TenantChange) -> TenantAnswer:
        visible_tenant(actor, self._audit, name)
        require_operator(actor.principal)
        before = await self._register.read(name)
        if before is None:
            raise no_such("tenant")
        tenant = _changed(before.value, body)
        if not await self._register.replace(before, self._entry(actor, tenant)):
            detail = "Somebody else changed it meanwhile. Look at it, then decide anew."
            raise ProblemError(Problem(kind="admin-conflict", detail=detail))
        self._cached.forget(name)
        self._audit.record(actor, "tenant.change", target=name, tenant=name, detail=_told(tenant))
        return self._answer(tenant)

    async def end(self, actor: Actor, name: str) -> TenantId:
        """Its keys are unknown from now on, for good. Repeating it changes nothing."""
        visible_tenant(actor, self._audit, name)
        require_operator(actor.principal)
        before = await self._register.read(name)
        if before is None:
            raise no_such("tenant")
        if before.value.state != "deleted":
            ended = msgspec.structs.replace(before.value, state="deleted")
            if not await self._register.replace(before, self._entry(actor, ended)):
                detail = "Somebody else changed it meanwhile. Look at it, then decide anew."
                raise ProblemError(Problem(kind="admin-conflict", detail=detail))
            self._cached.forget(name)
            self._audit.record(actor, "tenant.erase", target=name, tenant=name, detail=_told(ended))
        return TenantId(name)

    def _entry(self, actor: Actor, tenant: StoredTenant) -> Entry[StoredTenant]:
        by = f"{actor.principal.tenant_id}/{actor.principal.agent_id}"
        return Entry(key=tenant.tenant, name=tenant.tenant, value=tenant, by=by, at=self._now())

    def _answer(self, tenant: StoredTenant) -> TenantAnswer:
        return TenantAnswer(
            **msgspec.structs.asdict(tenant), limits_in_force=tenant.limits_over(self._defaults)
        )


class AuditLog:
    """Raises ProblemError; Transient where the store is away."""

    def __init__(self, gate: Gate, audit: Audit) -> None:
        self._gate = gate
        self._audit = audit

    async def read(
        self, actor: Actor, tenant: str | None, *, cursor: str | None, page_size: int
    ) -> AuditAnswer:
        """Newest first. What was done a second ago may not stand in it yet."""
        owner = managed_tenant(actor, self._audit, tenant)
        asker = actor.principal
        rows = RowList(
            name=("audit", owner, asker.tenant_id, asker.agent_id),
            index=Index.CONTROL,
            query={"bool": {"filter": [{"term": {"kind": KIND}}]}},
            sort=(SortKey(field="name", kind="newest"),),
        )
        keeper = Principal.pipeline(TenantId(owner))
        entries, next_cursor = await read_page(
            self._gate, keeper, rows, _lines, cursor=cursor, size=page_size
        )
        return AuditAnswer(entries=entries, next_cursor=next_cursor)


async def _lines(hits: Sequence[SearchHit]) -> list[AuditLine]:
    return [AuditLine.model_validate(hit.source["value"]) for hit in hits]


def _changed(tenant: StoredTenant, body: TenantChange) -> StoredTenant:
    changes: dict[str, Any] = {}
    if body.suspended is not None:
        if tenant.state == "deleted":
            raise ProblemError(Problem(kind="admin-conflict", detail="This tenant was deleted."))
        changes["state"] = "suspended" if body.suspended else "active"
    if body.note is not None:
        changes["note"] = body.note
    if body.limits is not None:
        changes["limits"] = _said(body.limits)
    return msgspec.structs.replace(tenant, **changes)


def _said(limits: Any) -> dict[str, Any]:
    said: dict[str, Any] = {} if limits is None else limits.model_dump(exclude_none=True)
    return said


def _told(tenant: StoredTenant) -> dict[str, str]:
    return {"state": tenant.state, **{name: str(value) for name, value in tenant.limits.items()}}
