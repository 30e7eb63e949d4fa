"""Keys, tenants and the audit log; and who a key makes the asker."""

from __future__ import annotations

import unicodedata
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import AfterValidator

from search_api.erasure.models import ErasureAnswer
from search_api.identity.authenticator import Identity
from search_api.identity.models import (
    AuditAnswer,
    KeyAnswer,
    KeyBody,
    KeysAnswer,
    NewKeyAnswer,
    TenantAnswer,
    TenantBody,
    TenantChange,
    TenantsAnswer,
    WhoamiAnswer,
    known_label,
)
from search_api.routes.documents import Cursor
from search_api.routes.shared import ActorDep, ServicesDep, bearer, problems, require_json

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[Depends(bearer)])
of_askers = APIRouter(prefix="/v1", tags=["admin"], dependencies=[Depends(bearer)])

#: A secret is shown once; no cache on its way may keep it.
_NO_STORE = {"cache-control": "no-store"}
GRACE_MAX_SECONDS = 30 * 86_400


KeyId = Annotated[str, Path(max_length=64, description="Id of a key: the part between its underscores.")]
TenantName = Annotated[
    str,
    Path(max_length=512, description="Name of a tenant."),
    AfterValidator(lambda name: unicodedata.normalize("NFC", name)),
]
OfTenant = Annotated[
    str | None,
    Query(max_length=128, description="Another tenant than the own: for operators."),
    AfterValidator(lambda name: None if name is None else known_label(name)),
]
PageSize = Annotated[int, Query(ge=1, le=200, description="Rows of a page.")]
_JSON = [Depends(require_json)]
_READ = problems(401, 403, 404, 422, 503)
_CHANGE = problems(401, 403, 404, 409, 415, 422, 503)


@router.post("/keys", summary="Make a key", status_code=201, responses=_CHANGE, dependencies=_JSON)
async def create_key(
    body: KeyBody, services: ServicesDep, actor: ActorDep, response: Response
) -> NewKeyAnswer:
    """The key itself is in the answer, this once. An admin makes keys of the own tenant, an operator of any."""
    response.headers.update(_NO_STORE)
    return await services.identity.key_admin.create(actor, body)


@router.get("/keys", summary="List keys", responses=_READ)
async def list_keys(
    services: ServicesDep,
    actor: ActorDep,
    *,
    tenant: OfTenant = None,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> KeysAnswer:
    """By tenant and id, revoked and expired ones too. Keys of the key file aren't listed."""
    return await services.identity.key_admin.list(actor, tenant, cursor=cursor, page_size=page_size)


@router.post("/keys/{key_id}/rotate", summary="Give a key another secret", responses=_CHANGE)
async def rotate_key(
    key_id: KeyId,
    services: ServicesDep,
    actor: ActorDep,
    response: Response,
    *,
    grace_seconds: Annotated[
        int, Query(ge=0, le=GRACE_MAX_SECONDS, description="So long the secret before counts too.")
    ] = 0,
) -> NewKeyAnswer:
    """Id, tenant, roles and end stay. The new key is in the answer, this once."""
    response.headers.update(_NO_STORE)
    return await services.identity.key_admin.rotate(actor, key_id, grace_seconds=grace_seconds)


@router.delete("/keys/{key_id}", summary="Revoke a key", responses=_CHANGE)
async def revoke_key(key_id: KeyId, services: ServicesDep, actor: ActorDep) -> KeyAnswer:
    """For good; counts on every replica within `api.key_cache_seconds`. Saying it again changes nothing."""
    return await services.identity.key_admin.revoke(actor, key_id)


@router.post("/tenants", summary="Enter a tenant", status_code=201, responses=_CHANGE, dependencies=_JSON)
async def create_tenant(body: TenantBody, services: ServicesDep, actor: ActorDep) -> TenantAnswer:
    """For operators."""
    return await services.identity.tenant_admin.create(actor, body)


@router.get("/tenants", summary="List tenants", responses=_READ)
async def list_tenants(
    services: ServicesDep, actor: ActorDep, *, page_size: PageSize = 50, cursor: Cursor = None
) -> TenantsAnswer:
    """All for an operator; for an admin the own."""
    return await services.identity.tenant_admin.list(actor, cursor=cursor, page_size=page_size)


@router.get("/tenants/{tenant}", summary="A tenant", responses=_READ)
async def get_tenant(tenant: TenantName, services: ServicesDep, actor: ActorDep) -> TenantAnswer:
    """State and limits."""
    return await services.identity.tenant_admin.get(actor, tenant)


@router.put("/tenants/{tenant}", summary="Change a tenant", responses=_CHANGE, dependencies=_JSON)
async def change_tenant(
    tenant: TenantName, body: TenantChange, services: ServicesDep, actor: ActorDep
) -> TenantAnswer:
    """Suspend it, or give it limits of its own. For operators; counts everywhere within `api.key_cache_seconds`."""
    return await services.identity.tenant_admin.change(actor, tenant, body)


@router.post(
    "/tenants/{tenant}/erase",
    summary="Erase a tenant for good",
    responses=_CHANGE | {202: {"description": "Not through yet: send it again.", "model": ErasureAnswer}},
)
async def erase_tenant(
    tenant: TenantName, services: ServicesDep, actor: ActorDep, response: Response
) -> ErasureAnswer:
    """Its keys are unknown at once; documents go by the thousand. For operators; `more`: send the same again."""
    tenant_id = await services.identity.tenant_admin.end(actor, tenant)
    answer = await services.erasures.erase_tenant(actor, tenant_id)
    response.status_code = 200 if answer.receipt and not answer.more else 202
    return answer


@router.get("/audit", summary="The audit log", responses=_READ)
async def read_audit(
    services: ServicesDep,
    actor: ActorDep,
    *,
    tenant: OfTenant = None,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> AuditAnswer:
    """Admin actions, refusals and erasures, newest first."""
    return await services.identity.audit_log.read(actor, tenant, cursor=cursor, page_size=page_size)


@of_askers.get("/whoami", summary="Who the key makes you", responses=problems(401, 422))
async def whoami(request: Request) -> WhoamiAnswer:
    """Tenant, agent, teams and roles."""
    identity: Identity = request.state.identity
    principal = identity.principal
    return WhoamiAnswer(
        tenant=principal.tenant_id,
        agent=principal.agent_id,
        teams=list(principal.teams),
        roles=list(principal.roles),
        source=identity.source,
        key_id=identity.key_id,
        expires_at=identity.expires_at,
        operator=identity.is_operator,
    )
