"""An issuer of signed tokens: keys made here, their public halves as a key set, and an address that serves it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from search_api.identity.settings import OidcSettings

ISSUER = "https://issuer.example"
AUDIENCE = "hopline"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    key_id: str | None
    algorithm: str
    private: Any

    @property
    def public(self) -> dict[str, Any]:
        """As it stands in a key set."""
        made = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key(), as_dict=True)
        return made | ({} if self.key_id is None else {"kid": self.key_id})

    def sign(self, *, key_id: str | None = None, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """A good token but for what `claims` say; None leaves a claim out."""
        body = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "exp": int(time.time()) + 300,
            "tenant": "acme",
            "agent": "ada",
        } | claims
        said = {name: value for name, value in body.items() if value is not None}
        named = key_id or self.key_id
        head = ({} if named is None else {"kid": named}) | (headers or {})
        return jwt.encode(said, self.private, algorithm=self.algorithm, headers=head)


def rsa_key(key_id: str | None = "rsa", bits: int = 2_048) -> SigningKey:
    private = rsa.generate_private_key(public_exponent=65_537, key_size=bits)
    return SigningKey(key_id=key_id, algorithm="RS256", private=private)


def ec_key(key_id: str | None = "ec") -> SigningKey:
    return SigningKey(key_id=key_id, algorithm="ES256", private=ec.generate_private_key(ec.SECP256R1()))


def ed_key(key_id: str | None = "ed") -> SigningKey:
    return SigningKey(key_id=key_id, algorithm="EdDSA", private=ed25519.Ed25519PrivateKey.generate())


def key_set(*keys: SigningKey) -> bytes:
    return json.dumps({"keys": [key.public for key in keys]}).encode()


def settings(**changes: Any) -> OidcSettings:
    """Keys from a file, unless told otherwise."""
    base = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_file": "jwks.json"}
    return OidcSettings.model_validate(base | changes)


@dataclass(kw_only=True)
class JwksServer:
    """Serves `body` with `status`, and counts how often it was asked."""

    url: str = ""
    status: int = 200
    body: bytes = b""
    asked: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        head = f"HTTP/1.1 {self.status} X\r\ncontent-length: {len(self.body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + self.body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def serving(*keys: SigningKey) -> AsyncIterator[JwksServer]:
    made = JwksServer(body=key_set(*keys))
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks"
    async with server:
        yield made
