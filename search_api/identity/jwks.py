"""The issuer's public keys: from a file that is read again when it changes, or from an address."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2
import jwt
import msgspec
import structlog

from search_api.auth import stamp_of

log = structlog.get_logger()

#: A key that isn't known is asked for at most so often, whoever makes up its id.
REFETCH_SECONDS: Final = 60.0
_FETCH_SECONDS: Final = 5.0
_MAX_BYTES: Final = 1_048_576
_MAX_KEYS: Final = 100
_RSA_MIN_BITS: Final = 2_048
_KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", None),
}


class KeySet:
    """Public keys by id. A key is used for signatures of its own kind only."""

    def __init__(self, keys: list[dict[str, Any]]) -> None:
        self._keys = [key for key in keys[:_MAX_KEYS] if key.get("use", "sig") == "sig"]

    @classmethod
    def parse(cls, raw: bytes) -> KeySet:
        """Raises ValueError for what is no key set."""
        value = msgspec.json.decode(raw)
        keys = value.get("keys") if isinstance(value, dict) else None
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            msg = 'no key set: an object with a list "keys" is due'
            raise ValueError(msg)
        return cls(keys)

    def key_for(self, key_id: str | None, algorithm: str) -> Any | None:
        """Without an id only where there is one key to mean."""
        if key_id is None:
            named = self._keys if len(self._keys) == 1 else []
        else:
            named = [key for key in self._keys if key.get("kid") == key_id]
        fitting = [key for key in named if _fits(key, algorithm)]
        return _public_key(fitting[0], algorithm) if len(fitting) == 1 else None


class KeySource(Protocol):
    async def key_for(self, key_id: str | None, algorithm: str) -> Any | None:
        """None: no such key. Raises NoKeysError where no set could be read yet."""
        ...

    async def close(self) -> None: ...


class NoKeysError(Exception):
    """There is no key set, so nothing can be said of a token."""


class FileKeys:
    """A file that became unreadable or wrong keeps the keys known last. At start a wrong file raises ValueError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = stamp_of(path)
        self._keys = KeySet.parse(path.read_bytes())

    async def key_for(self, key_id: str | None, algorithm: str) -> Any | None:
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._keys = KeySet.parse(self._path.read_bytes())
            except (OSError, ValueError) as exc:
                log.error("jwks.refused", file=str(self._path), error=str(exc))  # noqa: TRY400 - the text says all
        return self._keys.key_for(key_id, algorithm)

    async def close(self) -> None:
        return


class UrlKeys:
    """Fetched at first use, when a key isn't known (at most once a minute), and beside requests once they are old.

    A fetch that fails keeps the set known last.
    """

    def __init__(
        self, url: str, *, refresh_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._refresh = refresh_seconds
        self._clock = clock
        self._http = httpx2.AsyncClient(timeout=_FETCH_SECONDS, follow_redirects=False)
        self._keys: KeySet | None = None
        self._read_at = 0.0
        self._tried_at: float | None = None
        self._pending: asyncio.Task[None] | None = None

    async def key_for(self, key_id: str | None, algorithm: str) -> Any | None:
        if self._keys is None:
            await self._fetched()
        elif self._clock() - self._read_at >= self._refresh:
            self._start()
        if self._keys is None:
            raise NoKeysError
        key = self._keys.key_for(key_id, algorithm)
        if key is None:
            await self._fetched()
            key = self._keys.key_for(key_id, algorithm)
        return key

    async def close(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.gather(self._pending, return_exceptions=True)
        await self._http.aclose()

    async def _fetched(self) -> None:
        task = self._start()
        if task is not None:
            await asyncio.shield(task)

    def _start(self) -> asyncio.Task[None] | None:
        """The fetch that runs, or a new one; None: it is too early for another."""
        if self._pending is not None and not self._pending.done():
            return self._pending
        now = self._clock()
        # Without any keys no token can be checked: then a second is long enough.
        least = REFETCH_SECONDS if self._keys is not None else 1.0
        if self._tried_at is not None and now - self._tried_at < least:
            return None
        self._tried_at = now
        self._pending = asyncio.create_task(self._fetch(now))
        return self._pending

    async def _fetch(self, now: float) -> None:
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                self._keys = KeySet.parse(await self._body())
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, TimeoutError, OSError) as exc:
            log.warning("jwks.not_fetched", url=self._url, error=f"{type(exc).__name__}: {exc}")
        else:
            self._read_at = now
            log.info("jwks.fetched", url=self._url)

    async def _body(self) -> bytes:
        body = bytearray()
        async with self._http.stream("GET", self._url, headers={"accept": "application/json"}) as answer:
            if answer.status_code != 200:
                msg = f"status {answer.status_code}"
                raise ValueError(msg)
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > _MAX_BYTES:
                    msg = f"more than {_MAX_BYTES} bytes"
                    raise ValueError(msg)
        return bytes(body)


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    kind, curve = _KINDS.get(algorithm, ("RSA", None))
    return (
        key.get("kty") == kind
        and curve in (None, key.get("crv"))
        and key.get("alg", algorithm) == algorithm
        # A private key in a key set is a mistake, and nothing that is signed with it proves anything.
        and "d" not in key
    )


def _public_key(key: dict[str, Any], algorithm: str) -> Any | None:
    try:
        public = jwt.PyJWK(key, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if getattr(public, "key_size", _RSA_MIN_BITS) < _RSA_MIN_BITS and key.get("kty") == "RSA":
        return None
    return public
