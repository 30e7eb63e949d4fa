"""Keys made, listed, rotated and revoked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from indexers.domain.identity import INSTALLATION
from search_api.identity.audit import Actor, Audit
from search_api.identity.key_text import KeyDigester, is_key_id, new_key
from search_api.identity.managed_keys import ManagedKeys
from search_api.identity.models import KeyAnswer, KeyBody, KeysAnswer, NewKeyAnswer
from search_api.identity.register import Entry, Register, Registered
from search_api.identity.rights import is_operator, managed_tenant, require_admin
from search_api.identity.stored import StoredKey, StoredTenant
from search_api.problems import Problem, ProblemError, invalid_field, no_such


class KeyAdministration:
    """Raises ProblemError; Transient where the store is away."""

    def __init__(
        self,
        keys: Register[StoredKey],
        tenants: Register[StoredTenant],
        *,
        digester: KeyDigester,
        cached: ManagedKeys,
        audit: Audit,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keys = keys
        self._tenants = tenants
        self._digester = digester
        self._cached = cached
        self._audit = audit
        self._now = now

    async def create(self, actor: Actor, body: KeyBody) -> NewKeyAnswer:
        tenant = managed_tenant(actor, self._audit, body.tenant)
        await self._check(actor, body, tenant)
        made = new_key()
        key = StoredKey(
            key_id=made.key_id,
            tenant=tenant,
            agent=body.agent,
            teams=tuple(dict.fromkeys(body.teams)),
            roles=tuple(dict.fromkeys(body.roles)),
            name=body.name,
            digest=self._digester.digest(made.text),
            created_at=self._now(),
            created_by=_who(actor),
            expires_at=body.expires_at,
        )
        if not await self._keys.add(self._entry(actor, key)):
            raise ProblemError(_changed())
        self._cached.forget(made.key_id)
        self._audit.record(
            actor,
            "key.create",
            target=made.key_id,
            tenant=tenant,
            detail={"agent": key.agent, "roles": " ".join(key.roles), "teams": " ".join(key.teams)},
        )
        return NewKeyAnswer(**_fields(key, self._now()), key=made.text)

    async def list(
        self, actor: Actor, tenant: str | None, *, cursor: str | None, page_size: int
    ) -> KeysAnswer:
        """An operator who names no tenant sees the keys of all."""
        owner = managed_tenant(actor, self._audit, tenant)
        everywhere = tenant is None and is_operator(actor.principal)
        found, next_cursor = await self._keys.page(
            "" if everywhere else f"{owner}/", cursor=cursor, size=page_size, asker=actor.principal
        )
        at = self._now()
        return KeysAnswer(keys=[KeyAnswer(**_fields(key, at)) for key in found], next_cursor=next_cursor)

    async def rotate(self, actor: Actor, key_id: str, *, grace_seconds: int) -> NewKeyAnswer:
        """Another secret under the same id; the one before counts for `grace_seconds` more."""
        before = await self._visible(actor, key_id)
        at = self._now()
        if before.value.state(at) != "active":
            detail = f"This key is {before.value.state(at)}: make another one."
            raise ProblemError(Problem(kind="admin-conflict", detail=detail))
        made = new_key(key_id)
        key = msgspec.structs.replace(
            before.value,
            digest=self._digester.digest(made.text),
            previous_digest=before.value.digest if grace_seconds else None,
            previous_until=at + timedelta(seconds=grace_seconds) if grace_seconds else None,
            rotated_at=at,
        )
        await self._replace(actor, before, key)
        told = {"grace_seconds": str(grace_seconds)}
        self._audit.record(actor, "key.rotate", target=key_id, tenant=key.tenant, detail=told)
        return NewKeyAnswer(**_fields(key, at), key=made.text)

    async def revoke(self, actor: Actor, key_id: str) -> KeyAnswer:
        """Once revoked, a key stays so; to say it again changes nothing."""
        before = await self._visible(actor, key_id)
        key = before.value
        if key.revoked_at is None:
            key = msgspec.structs.replace(
                key, revoked_at=self._now(), previous_digest=None, previous_until=None
            )
            await self._replace(actor, before, key)
            self._audit.record(actor, "key.revoke", target=key_id, tenant=key.tenant)
        return KeyAnswer(**_fields(key, self._now()))

    async def _check(self, actor: Actor, body: KeyBody, tenant: str) -> None:
        if body.expires_at is not None and body.expires_at <= self._now():
            raise ProblemError(invalid_field("body.expires_at", "lies in the past"))
        if not is_operator(actor.principal):
            return
        if body.tenant is None:
            raise ProblemError(invalid_field("body.tenant", "an operator names the tenant"))
        if tenant == INSTALLATION:
            if body.roles != ["admin"] or body.teams:
                text = "a key of the installation is an operator's: it has the role admin alone, and no teams"
                raise ProblemError(invalid_field("body.roles", text))
            return
        known = await self._tenants.readable(tenant)
        if known is None or known.value.state == "deleted":
            raise no_such("tenant")

    async def _visible(self, actor: Actor, key_id: str) -> Registered[StoredKey]:
        """One answer for a key of another tenant and for one that isn't there."""
        require_admin(actor.principal)
        found = await self._keys.readable(key_id) if is_key_id(key_id) else None
        foreign = found is not None and found.value.tenant != actor.principal.tenant_id
        if found is None or (foreign and not is_operator(actor.principal)):
            raise no_such("key")
        return found

    async def _replace(self, actor: Actor, before: Registered[StoredKey], key: StoredKey) -> None:
        if not await self._keys.replace(before, self._entry(actor, key)):
            raise ProblemError(_changed())
        self._cached.forget(key.key_id)

    def _entry(self, actor: Actor, key: StoredKey) -> Entry[StoredKey]:
        return Entry(
            key=key.key_id, name=f"{key.tenant}/{key.key_id}", value=key, by=_who(actor), at=self._now()
        )


def _fields(key: StoredKey, at: datetime) -> dict[str, object]:
    in_grace = key.previous_until is not None and at < key.previous_until
    return {
        "key_id": key.key_id,
        "tenant": key.tenant,
        "agent": key.agent,
        "teams": list(key.teams),
        "roles": list(key.roles),
        "name": key.name,
        "state": key.state(at),
        "created_at": key.created_at,
        "created_by": key.created_by,
        "rotated_at": key.rotated_at,
        "grace_until": key.previous_until if in_grace else None,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }


def _who(actor: Actor) -> str:
    return f"{actor.principal.tenant_id}/{actor.principal.agent_id}"


def _changed() -> Problem:
    return Problem(
        kind="admin-conflict", detail="Somebody else changed it meanwhile. Look at it, then decide anew."
    )
