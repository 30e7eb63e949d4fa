"""A token's claims → who asks. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from indexers.domain.identity import INSTALLATION, AgentId, Principal, Role, TeamId, TenantId
from search_api.identity.settings import OidcSettings
from search_api.identity.stored import GRANTABLE

_LIST_MAX: Final = 100


class ClaimError(ValueError):
    """The token names nobody that this service can know."""


def principal_from(claims: Mapping[str, Any], settings: OidcSettings) -> Principal:
    """Raises ClaimError. Names are NFC, as everywhere."""
    tenant = _name(claims, settings.tenant_claim)
    if tenant == INSTALLATION:
        # Operators have keys of the installation: no issuer makes them.
        raise ClaimError
    try:
        return Principal(
            tenant_id=TenantId(tenant),
            agent_id=AgentId(_name(claims, settings.agent_claim)),
            teams=tuple(TeamId(team) for team in _names(claims, settings.teams_claim)),
            roles=_roles(claims, settings),
        )
    except ValueError as exc:
        raise ClaimError from exc


def _roles(claims: Mapping[str, Any], settings: OidcSettings) -> tuple[Role, ...]:
    """The issuer's other roles mean nothing here, but one: `pipeline` is refused, never passed over."""
    named = _names(claims, settings.roles_claim)
    if "pipeline" in named:
        raise ClaimError
    return tuple(role for role in GRANTABLE if role in named) or settings.default_roles


def _name(claims: Mapping[str, Any], name: str) -> str:
    value = _value(claims, name)
    if not isinstance(value, str):
        raise ClaimError
    return unicodedata.normalize("NFC", value)


def _names(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list, or one text with spaces between (as `scope` has it). Nothing where there is no such claim."""
    value = _value(claims, name)
    listed = value.split() if isinstance(value, str) else [] if value is None else value
    if not isinstance(listed, list) or len(listed) > _LIST_MAX:
        raise ClaimError
    if not all(isinstance(item, str) for item in listed):
        raise ClaimError
    return tuple(dict.fromkeys(unicodedata.normalize("NFC", item) for item in listed))


def _value(claims: Mapping[str, Any], name: str) -> Any:
    """`realm_access.roles` is a field of a claim, unless a claim has just this name."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value
