"""Who may do what to keys and tenants.

A key grants no role that its maker doesn't have, in no other tenant. An admin may make keys of any agent of the tenant,
and so come to read its personal memories: the audit log of the tenant says who made which key.
"""

from __future__ import annotations

from indexers.domain.identity import INSTALLATION, Principal
from search_api.identity.audit import Actor, Audit
from search_api.problems import forbidden, no_such


def is_operator(principal: Principal) -> bool:
    return principal.tenant_id == INSTALLATION and "admin" in principal.roles


def require_admin(principal: Principal) -> None:
    if "admin" not in principal.roles:
        raise forbidden("Only a key with the role `admin` may do this.")


def require_operator(principal: Principal) -> None:
    require_admin(principal)
    if not is_operator(principal):
        raise forbidden("Only an operator of the installation may do this.")


def managed_tenant(actor: Actor, audit: Audit, named: str | None) -> str:
    """The tenant that a request is about; the actor's own where it names none."""
    principal = actor.principal
    require_admin(principal)
    own = principal.tenant_id
    if named is None or named == own or is_operator(principal):
        return named or own
    note_foreign(actor, audit, named)
    raise forbidden("An admin manages the own tenant only.")


def visible_tenant(actor: Actor, audit: Audit, named: str) -> str:
    """Any for an operator, else the own. Another answers as one that isn't there."""
    principal = actor.principal
    require_admin(principal)
    if named != principal.tenant_id and not is_operator(principal):
        note_foreign(actor, audit, named)
        raise no_such("tenant")
    return named


def note_foreign(actor: Actor, audit: Audit, named: str) -> None:
    """Told of what was named, never of whether it is there: the actor's own admins read this."""
    audit.record(actor, "request.cross_tenant", target=named[:200], outcome="denied")
