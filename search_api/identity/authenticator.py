"""Who asks: the key file, the register of keys and signed tokens, joined."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from indexers.domain.identity import INSTALLATION, Principal
from indexers.errors import Transient
from search_api.auth import KeyRing
from search_api.identity.key_text import key_id_of
from search_api.identity.managed_keys import ManagedKeys
from search_api.identity.refusals import SUSPENDED, Refused
from search_api.identity.tenants import Standing, Tenants
from search_api.identity.tokens import TokenVerifier
from search_api.quotas import Quotas

#: Nothing longer is a key or a token.
_MAX_CHARS: Final = 16_384

Source = Literal["key_file", "key", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`key_id`: of a key of the register."""

    principal: Principal
    source: Source
    key_id: str | None = None
    expires_at: datetime | None = None

    @property
    def is_operator(self) -> bool:
        return self.principal.tenant_id == INSTALLATION and "admin" in self.principal.roles


class Authenticator:
    """Raises Refused, or Transient where only the store could tell. `tokens` None: no tokens are taken."""

    def __init__(
        self,
        key_file: KeyRing,
        *,
        keys: ManagedKeys,
        tokens: TokenVerifier | None,
        tenants: Tenants,
        quotas: Quotas,
    ) -> None:
        self._key_file = key_file
        self._keys = keys
        self._tokens = tokens
        self._tenants = tenants
        self._quotas = quotas

    async def identify(self, authorization: str | None) -> Identity:
        """`authorization`: the header's value. The limits of the asker's tenant are in force afterwards."""
        text = bearer_text(authorization)
        if text is None:
            raise Refused("missing")
        identity = await self._identity(text)
        if identity.principal.tenant_id != INSTALLATION:
            await self._admit(identity)
        return identity

    async def _identity(self, text: str) -> Identity:
        filed = self._key_file.find(text)
        if filed is not None:
            return Identity(principal=filed, source="key_file")
        key_id = key_id_of(text)
        if key_id is not None:
            key = await self._keys.find(text, key_id)
            return Identity(principal=key.principal, source="key", key_id=key_id, expires_at=key.expires_at)
        if self._tokens is not None and text.count(".") == 2:
            token = await self._tokens.verify(text)
            return Identity(principal=token.principal, source="token", expires_at=token.expires_at)
        raise Refused("unknown")

    async def _admit(self, identity: Identity) -> None:
        standing = await self._standing(identity)
        match standing.state:
            case "deleted":
                raise Refused("unknown")
            case "suspended":
                raise Refused("suspended", SUSPENDED)
            case "unregistered" if identity.source == "token" and self._tokens is not None:
                if self._tokens.registered_tenants_only:
                    raise Refused("token")
            case _:
                pass
        self._quotas.assign(identity.principal.tenant_id, standing.limits)

    async def _standing(self, identity: Identity) -> Standing:
        """A key in the file needs no store to be known: it opens what can be told without one."""
        try:
            return await self._tenants.standing(identity.principal.tenant_id)
        except Transient:
            if identity.source != "key_file":
                raise
            return self._tenants.last_known(identity.principal.tenant_id)


def bearer_text(authorization: str | None) -> str | None:
    """None: another scheme, nothing, or more than any key or token has."""
    scheme, _, text = (authorization or "").partition(" ")
    text = text.strip()
    return text if scheme.lower() == "bearer" and text and len(text) <= _MAX_CHARS else None
