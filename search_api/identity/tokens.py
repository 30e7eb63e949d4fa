"""Signed tokens (JWT, RFC 7519): checked against the issuer's keys, remembered for a few seconds."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import jwt

from indexers.domain.identity import Principal
from indexers.errors import ConfigurationError
from search_api.identity.claims import ClaimError, principal_from
from search_api.identity.jwks import FileKeys, KeySource, NoKeysError, UrlKeys
from search_api.identity.refusals import NO_TOKEN_KEYS, Refused
from search_api.identity.settings import OidcSettings

_ENTRIES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    principal: Principal
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    token: Token
    #: By the monotonic clock; a key that the issuer withdrew counts no longer than this.
    until: float


class TokenVerifier:
    """Raises Refused. `now`: seconds since 1970."""

    def __init__(
        self,
        settings: OidcSettings,
        keys: KeySource,
        *,
        ttl_seconds: float,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._ttl = ttl_seconds
        self._now = now
        self._clock = clock
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()

    @property
    def registered_tenants_only(self) -> bool:
        return self._settings.registered_tenants_only

    async def verify(self, text: str) -> Token:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._verified.get(digest)
        if known is not None and self._clock() < known.until:
            return known.token
        token = await self._checked(text)
        left = token.expires_at.timestamp() + self._settings.leeway_seconds - self._now()
        self._verified[digest] = _Verified(token=token, until=self._clock() + min(self._ttl, left))
        self._verified.move_to_end(digest)
        if len(self._verified) > _ENTRIES:
            self._verified.popitem(last=False)
        return token

    async def close(self) -> None:
        await self._keys.close()

    async def _checked(self, text: str) -> Token:
        try:
            header = jwt.get_unverified_header(text)
        except (jwt.PyJWTError, ValueError) as exc:
            raise Refused("token") from exc
        algorithm, key_id = header.get("alg"), header.get("kid")
        # The list is ours: what a token says of itself picks among it, and never adds to it.
        if algorithm not in self._settings.algorithms or "crit" in header:
            raise Refused("token")
        try:
            key = await self._keys.key_for(key_id, algorithm)
        except NoKeysError as exc:
            raise Refused("unavailable", NO_TOKEN_KEYS) from exc
        if key is None:
            raise Refused("token")
        return self._read(text, key, algorithm)

    def _read(self, text: str, key: Any, algorithm: str) -> Token:
        settings = self._settings
        try:
            claims = jwt.decode(
                text,
                key,
                algorithms=[algorithm],
                issuer=settings.issuer,
                audience=settings.audience,
                leeway=settings.leeway_seconds,
                options={"require": ["exp", "iss", "aud"]},
            )
            return Token(
                principal=principal_from(claims, settings),
                expires_at=datetime.fromtimestamp(int(claims["exp"]), UTC),
            )
        except jwt.ExpiredSignatureError as exc:
            raise Refused("token_expired") from exc
        except (jwt.PyJWTError, ClaimError, ValueError, OverflowError, OSError) as exc:
            raise Refused("token") from exc


def token_verifier(settings: OidcSettings, *, ttl_seconds: float) -> TokenVerifier | None:
    """None where no tokens are taken. Raises ConfigurationError for a key file that can't be used."""
    if settings.issuer is None:
        return None
    if settings.jwks_url is not None:
        source: KeySource = UrlKeys(settings.jwks_url, refresh_seconds=settings.jwks_refresh_seconds)
        return TokenVerifier(settings, source, ttl_seconds=ttl_seconds)
    assert settings.jwks_file is not None  # noqa: S101 - the settings say one of the two
    try:
        source = FileKeys(settings.jwks_file)
    except (OSError, ValueError) as exc:
        msg = f"oidc.jwks_file: {settings.jwks_file} can't be used: {exc}"
        raise ConfigurationError(msg) from exc
    return TokenVerifier(settings, source, ttl_seconds=ttl_seconds)
