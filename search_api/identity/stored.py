"""What the register holds of a key and of a tenant. Pure."""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from indexers.domain.identity import AgentId, Principal, Role, TeamId, TenantId
from search_api.overlays import overlaid, partial_of
from search_api.settings import LimitsSettings

#: What a key or a token may grant. `pipeline` sees every scope of a tenant and is never made from a request.
GRANTABLE: Final[tuple[Role, ...]] = ("reader", "agent", "curator", "admin")
_NO_DIGEST: Final = "0" * 64

KeyState = Literal["active", "expired", "revoked"]

#: A tenant's own limits: any fields of the section `limits`.
TenantLimits: Any = partial_of(LimitsSettings, "TenantLimits", strict=True)


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret. After a rotation the digest before counts until `previous_until`."""

    key_id: str
    tenant: str
    agent: str
    teams: tuple[str, ...] = ()
    roles: tuple[Role, ...] = ("agent",)
    name: str = ""
    digest: str
    previous_digest: str | None = None
    previous_until: datetime | None = None
    created_at: datetime
    created_by: str
    rotated_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def principal(self) -> Principal:
        """Raises ValueError for a row that grants what nobody may grant."""
        if not set(self.roles) <= set(GRANTABLE):
            msg = f"key {self.key_id} has roles that no key has"
            raise ValueError(msg)
        return Principal(
            tenant_id=TenantId(self.tenant),
            agent_id=AgentId(self.agent),
            teams=tuple(TeamId(team) for team in self.teams),
            roles=self.roles,
        )

    def state(self, at: datetime) -> KeyState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= at else "active"

    def has_digest(self, digest: str, at: datetime) -> bool:
        """Two comparisons in constant time, whatever is stored."""
        current = hmac.compare_digest(self.digest, digest)
        previous = hmac.compare_digest(self.previous_digest or _NO_DIGEST, digest)
        in_grace = self.previous_until is not None and at < self.previous_until
        return current or (previous and in_grace and self.previous_digest is not None)


class StoredTenant(msgspec.Struct, frozen=True, kw_only=True):
    """`deleted` (by an erasure of the whole tenant): its keys are unknown. `limits`: what differs for it."""

    tenant: str
    state: Literal["active", "suspended", "deleted"] = "active"
    note: str = ""
    limits: dict[str, Any] = {}
    created_at: datetime
    created_by: str

    def limits_over(self, defaults: LimitsSettings) -> LimitsSettings:
        """Raises ValueError where what is stored can't be used."""
        return overlaid(defaults, TenantLimits.model_validate(self.limits))
