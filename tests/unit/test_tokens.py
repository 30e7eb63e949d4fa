"""Signed tokens: whom they make the asker, and which are refused."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import ValidationError

from indexers.domain.identity import AgentId, Principal, TeamId, TenantId
from indexers.errors import ConfigurationError
from search_api.identity.jwks import FileKeys, KeySet, UrlKeys
from search_api.identity.refusals import NO_TOKEN_KEYS, Refused
from search_api.identity.settings import OidcSettings
from search_api.identity.tokens import TokenVerifier, token_verifier
from tests.issuer import ISSUER, SigningKey, ec_key, ed_key, key_set, rsa_key, serving, settings

RSA, EC, ED = rsa_key(), ec_key(), ed_key()
ADA = Principal(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), roles=("reader",))


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def verifier(folder: Path, *keys: SigningKey, **changes: Any) -> TokenVerifier:
    path = folder / "jwks.json"
    path.write_bytes(key_set(*(keys or (RSA, EC, ED))))
    return TokenVerifier(settings(**changes), FileKeys(path), ttl_seconds=5)


async def principal(made: TokenVerifier, token: str) -> Principal:
    return (await made.verify(token)).principal


async def reason(made: TokenVerifier, token: str) -> str:
    with pytest.raises(Refused) as refused:
        await made.verify(token)
    return refused.value.reason


class TestTaken:
    @pytest.mark.parametrize("key", [RSA, EC, ED], ids=lambda key: key.algorithm)
    async def test_each_kind_of_signature(self, tmp_path: Path, key: SigningKey) -> None:
        assert await principal(verifier(tmp_path), key.sign()) == ADA

    async def test_claims_make_the_asker(self, tmp_path: Path) -> None:
        token = RSA.sign(teams=["ops", "ops", "잠수"], roles=["offline_access", "admin", "agent"])
        assert await principal(verifier(tmp_path), token) == Principal(
            tenant_id=TenantId("acme"),
            agent_id=AgentId("ada"),
            teams=(TeamId("ops"), TeamId("잠수")),
            roles=("agent", "admin"),
        )

    async def test_claims_of_other_names(self, tmp_path: Path) -> None:
        made = verifier(
            tmp_path,
            tenant_claim="https://hopline.example/tenant",
            agent_claim="sub",
            teams_claim="scope",
            roles_claim="realm_access.roles",
        )
        claims: dict[str, Any] = {
            "https://hopline.example/tenant": "zeta",
            "tenant": None,
            "agent": None,
            "sub": "bob",
            "scope": "ops sea",
            "realm_access": {"roles": ["curator"]},
        }
        token = RSA.sign(**claims)
        assert await principal(made, token) == Principal(
            tenant_id=TenantId("zeta"),
            agent_id=AgentId("bob"),
            teams=(TeamId("ops"), TeamId("sea")),
            roles=("curator",),
        )

    async def test_names_are_nfc(self, tmp_path: Path) -> None:
        found = await principal(verifier(tmp_path), RSA.sign(agent="가람"))
        assert found.agent_id == "가람"

    async def test_one_key_needs_no_id(self, tmp_path: Path) -> None:
        alone = rsa_key(None)
        assert await principal(verifier(tmp_path, alone), alone.sign()) == ADA

    async def test_the_issuers_clock_may_differ_a_little(self, tmp_path: Path) -> None:
        made = verifier(tmp_path, leeway_seconds=30)
        now = int(time.time())
        assert await principal(made, RSA.sign(exp=now - 10)) == ADA
        assert await principal(made, RSA.sign(nbf=now + 10)) == ADA


class TestRefused:
    @pytest.mark.parametrize(
        ("claims", "why"),
        [
            ({"iss": "https://other.example"}, "token"),
            ({"iss": None}, "token"),
            ({"aud": "other"}, "token"),
            ({"aud": None}, "token"),
            ({"exp": None}, "token"),
            ({"exp": int(time.time()) - 60}, "token_expired"),
            ({"exp": "soon"}, "token"),
            ({"nbf": int(time.time()) + 600}, "token"),
            ({"tenant": None}, "token"),
            ({"tenant": "hopline"}, "token"),
            ({"tenant": "a/b"}, "token"),
            ({"tenant": ["acme"]}, "token"),
            ({"tenant": ""}, "token"),
            ({"agent": None}, "token"),
            ({"agent": ".."}, "token"),
            ({"agent": 5}, "token"),
            ({"teams": {"a": 1}}, "token"),
            ({"teams": [1]}, "token"),
            ({"teams": ["x/y"]}, "token"),
            ({"teams": [f"t{n}" for n in range(101)]}, "token"),
            ({"roles": ["pipeline"]}, "token"),
            ({"roles": "agent pipeline"}, "token"),
            ({"roles": 1}, "token"),
            ({"iat": "never"}, "token"),
        ],
    )
    async def test_claims(self, tmp_path: Path, claims: dict[str, Any], why: str) -> None:
        assert await reason(verifier(tmp_path), RSA.sign(**claims)) == why

    async def test_a_signature_of_another_key(self, tmp_path: Path) -> None:
        assert await reason(verifier(tmp_path), rsa_key("rsa").sign()) == "token"

    async def test_a_changed_body(self, tmp_path: Path) -> None:
        head, body, signature = RSA.sign().split(".")
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        other = (
            base64.urlsafe_b64encode(json.dumps(claims | {"tenant": "zeta"}).encode()).rstrip(b"=").decode()
        )
        assert await reason(verifier(tmp_path), f"{head}.{other}.{signature}") == "token"

    async def test_no_signature(self, tmp_path: Path) -> None:
        good = jwt.decode(RSA.sign(), options={"verify_signature": False})
        token = jwt.encode(good, "", algorithm="none", headers={"kid": "rsa"})
        assert await reason(verifier(tmp_path), token) == "token"

    async def test_the_public_key_as_a_shared_secret(self, tmp_path: Path) -> None:
        """RS256 taken for HS256, with what everybody can read as its secret."""
        _, body, _ = RSA.sign().split(".")
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"rsa"}').rstrip(b"=").decode()
        public = RSA.private.public_key()
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        signature = hmac.digest(pem, f"{head}.{body}".encode(), "sha256")
        token = f"{head}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
        assert await reason(verifier(tmp_path), token) == "token"

    async def test_an_algorithm_that_is_not_taken(self, tmp_path: Path) -> None:
        assert await reason(verifier(tmp_path, algorithms=["ES256"]), RSA.sign()) == "token"

    async def test_a_key_of_another_kind_than_the_algorithm(self, tmp_path: Path) -> None:
        assert await reason(verifier(tmp_path), RSA.sign(key_id="ec")) == "token"

    @pytest.mark.parametrize("key_id", ["other", "", "rsa\x00"])
    async def test_an_unknown_key_id(self, tmp_path: Path, key_id: str) -> None:
        assert await reason(verifier(tmp_path), RSA.sign(headers={"kid": key_id})) == "token"

    async def test_no_key_id_where_there_are_several(self, tmp_path: Path) -> None:
        nameless = SigningKey(key_id=None, algorithm="RS256", private=RSA.private)
        assert await reason(verifier(tmp_path), nameless.sign()) == "token"

    async def test_a_key_that_is_short_is_for_encryption_or_is_private(self, tmp_path: Path) -> None:
        short = rsa_key("short", bits=1_024)
        with pytest.warns(jwt.InsecureKeyLengthWarning):
            token = short.sign()
        made = verifier(tmp_path, short, RSA)
        assert await reason(made, token) == "token"
        keys = KeySet(
            [RSA.public | {"use": "enc"}, EC.public | {"d": "AA"}, {"kty": "oct", "k": "AA", "kid": "x"}]
        )
        assert [keys.key_for(name, "RS256") for name in ("rsa", "x", None)] == [None, None, None]
        assert keys.key_for("ec", "ES256") is None

    @pytest.mark.parametrize(
        "text", ["..", "a.b.c", "é.é.é", "\udcff.a.b", "e30.e30.e30", f"{'a' * 9000}.b.c"]
    )
    async def test_what_is_no_token(self, tmp_path: Path, text: str) -> None:
        assert await reason(verifier(tmp_path), text) == "token"

    async def test_a_remembered_token_ends_with_its_time(self, tmp_path: Path) -> None:
        path = tmp_path / "jwks.json"
        path.write_bytes(key_set(RSA))
        clock, exp = Clock(), int(time.time()) + 2
        made = TokenVerifier(
            settings(leeway_seconds=0), FileKeys(path), ttl_seconds=60, now=lambda: exp - 2.0, clock=clock
        )
        token = RSA.sign(exp=exp)
        assert await principal(made, token) == ADA
        path.write_bytes(key_set(EC))
        clock.now += 1.9
        assert await principal(made, token) == ADA
        clock.now += 0.2
        assert await reason(made, token) == "token"


class TestKeyFile:
    async def test_a_new_file_counts_and_a_wrong_one_does_not(self, tmp_path: Path) -> None:
        made, path = verifier(tmp_path, RSA), tmp_path / "jwks.json"
        assert await reason(made, EC.sign()) == "token"
        path.write_bytes(key_set(EC))
        assert await principal(made, EC.sign()) == ADA
        path.write_bytes(b"{half")
        assert await principal(made, EC.sign(agent="ada", jti="2")) == ADA

    @pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"keys": 1}', b'{"keys": [1]}', b"\xff"])
    def test_a_wrong_file_is_named_at_start(self, tmp_path: Path, raw: bytes) -> None:
        path = tmp_path / "jwks.json"
        path.write_bytes(raw)
        with pytest.raises(ConfigurationError, match=r"oidc\.jwks_file: .*jwks\.json"):
            token_verifier(settings(jwks_file=path), ttl_seconds=5)

    def test_a_missing_file_is_named_at_start(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"none\.json"):
            token_verifier(settings(jwks_file=tmp_path / "none.json"), ttl_seconds=5)


class TestRotation:
    async def test_an_unknown_key_is_asked_for_once_a_minute_at_most(self) -> None:
        clock = Clock()
        async with serving(RSA) as server:
            made = UrlKeys(server.url, refresh_seconds=900, clock=clock)
            assert await made.key_for("rsa", "RS256") is not None
            server.body = key_set(RSA, EC)
            assert await made.key_for("ec", "ES256") is None, "the set was read a moment ago"
            clock.now += 61
            assert await made.key_for("ec", "ES256") is not None
            for number in range(50):
                assert await made.key_for(f"made-up-{number}", "ES256") is None
            assert server.asked == 2
            await made.close()

    async def test_a_withdrawn_key_goes_with_the_next_refresh(self) -> None:
        clock = Clock()
        async with serving(RSA, EC) as server:
            made = UrlKeys(server.url, refresh_seconds=900, clock=clock)
            assert await made.key_for("rsa", "RS256") is not None
            server.body = key_set(EC)
            clock.now += 900
            # Nobody waits for the refresh; the one after it is told.
            assert await made.key_for("rsa", "RS256") is not None
            while server.asked < 2 or await made.key_for("rsa", "RS256") is not None:  # noqa: ASYNC110 - no event of ours
                await asyncio.sleep(0.005)
            assert await made.key_for("ec", "ES256") is not None
            await made.close()

    async def test_a_fetch_that_fails_keeps_the_keys(self) -> None:
        clock = Clock()
        async with serving(RSA) as server:
            made = UrlKeys(server.url, refresh_seconds=900, clock=clock)
            assert await made.key_for("rsa", "RS256") is not None
            for status, body in ((500, key_set(EC)), (200, b"{half"), (200, b"x" * 2_000_000), (302, b"")):
                server.status, server.body = status, body
                clock.now += 1_000
                assert await made.key_for("ec", "ES256") is None
                assert await made.key_for("rsa", "RS256") is not None
            assert server.asked == 5
            await made.close()

    async def test_without_any_keys_nothing_is_said_of_a_token(self) -> None:
        clock = Clock()
        async with serving(RSA) as server:
            server.status = 500
            keys = UrlKeys(server.url, refresh_seconds=900, clock=clock)
            made = TokenVerifier(settings(jwks_file=None, jwks_url=server.url), keys, ttl_seconds=5)
            with pytest.raises(Refused) as refused:
                await made.verify(RSA.sign())
            assert (refused.value.reason, refused.value.problem) == ("unavailable", NO_TOKEN_KEYS)
            server.status = 200
            clock.now += 2
            assert await principal(made, RSA.sign()) == ADA
            await made.close()

    async def test_many_tokens_at_once_fetch_once(self) -> None:
        async with serving(RSA) as server:
            keys = UrlKeys(server.url, refresh_seconds=900)
            made = TokenVerifier(settings(jwks_file=None, jwks_url=server.url), keys, ttl_seconds=5)
            found = await asyncio.gather(*(principal(made, RSA.sign(jti=str(n))) for n in range(20)))
            assert (found, server.asked) == ([ADA] * 20, 1)
            await made.close()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"audience": None}, "oidc.audience"),
        ({"jwks_file": None}, "either oidc.jwks_url or oidc.jwks_file"),
        ({"jwks_url": "https://a.example/jwks"}, "either"),
        ({"jwks_file": None, "jwks_url": "http://a.example/jwks"}, "https"),
        ({"jwks_file": None, "jwks_url": "ftp://a.example"}, "https"),
        ({"jwks_file": None, "jwks_url": "https://"}, "https"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": []}, "algorithms"),
        ({"default_roles": ["admin"]}, "default_roles"),
    ],
)
def test_settings_that_would_let_others_in_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        settings(**changes)


def test_no_issuer_no_tokens() -> None:
    assert token_verifier(OidcSettings(), ttl_seconds=5) is None
    assert settings(jwks_file=None, jwks_url="http://127.0.0.1:1/jwks").issuer == ISSUER
