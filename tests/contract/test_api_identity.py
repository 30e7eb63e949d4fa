"""Keys of the register, through the routes and over the real store."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from dirty_equals import IsPartialDict, IsStr

from indexers.domain.identity import INSTALLATION
from indexers.opensearch.gate import RowRef, RowWrite
from indexers.opensearch.rows import ControlRow, Index
from search_api.identity.register import REGISTRAR
from tests.api import Service, bearer
from tests.conftest import Stack
from tests.identity_api import (
    BOSS,
    CACHE_SECONDS,
    ED,
    NOBODY,
    OPERATOR,
    OTHER_BOSS,
    ask,
    identity_service,
    make,
    refused,
)

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    async with identity_service(stack, tmp_path_factory.mktemp("identity")) as opened:
        yield opened


class TestKeys:
    async def test_a_made_key_is_shown_once_and_opens_its_tenant(self, service: Service) -> None:
        made = await make(service, teams=["ops", "ops"], roles=["curator", "agent"], name="Nia's laptop")
        assert made == {
            "key_id": IsStr(regex="[0-9a-f]{16}"),
            "key": IsStr(regex="hop_[0-9a-f]{16}_[A-Za-z0-9_-]{43}"),
            "tenant": "acme",
            "agent": "nia",
            "teams": ["ops"],
            "roles": ["curator", "agent"],
            "name": "Nia's laptop",
            "state": "active",
            "created_at": IsStr(),
            "created_by": "acme/boss",
            "rotated_at": None,
            "grace_until": None,
            "expires_at": None,
            "revoked_at": None,
        }
        assert await ask(service, made["key"], "GET", "/v1/whoami") == {
            "tenant": "acme",
            "agent": "nia",
            "teams": ["ops"],
            "roles": ["curator", "agent"],
            "source": "key",
            "key_id": made["key_id"],
            "expires_at": None,
            "operator": False,
        }
        listed = await ask(service, BOSS, "GET", "/v1/admin/keys", params={"page_size": 200})
        [mine] = [key for key in listed["keys"] if key["key_id"] == made["key_id"]]
        assert mine == {name: value for name, value in made.items() if name != "key"}

    async def test_neither_key_nor_plain_digest_is_stored(self, service: Service) -> None:
        made = await make(service)
        secret = made["key"].rpartition("_")[2]
        stored = await service.http.get("/v1/admin/keys?page_size=200", headers=bearer(BOSS))
        assert secret not in stored.text
        assert "digest" not in stored.text

    async def test_a_revoked_key_is_unknown_at_once_here_and_stays_so(self, service: Service) -> None:
        made = await make(service)
        path = f"/v1/admin/keys/{made['key_id']}"
        await ask(service, made["key"], "GET", "/v1/whoami")
        assert (await ask(service, BOSS, "DELETE", path))["state"] == "revoked"
        unknown = await refused(service, f"hop_{NOBODY}_{'a' * 43}", "GET", "/v1/whoami")
        assert await refused(service, made["key"], "GET", "/v1/whoami") == unknown
        assert unknown[0] == 401
        again = await ask(service, BOSS, "DELETE", path)
        assert again["state"] == "revoked"
        assert await refused(service, BOSS, "POST", f"{path}/rotate") == (
            409,
            IsPartialDict(type="urn:hopline:problem:admin-conflict"),
        )

    async def test_a_rotated_key_counts_no_more_unless_grace_was_given(self, service: Service) -> None:
        made = await make(service)
        path = f"/v1/admin/keys/{made['key_id']}/rotate"
        second = await ask(service, BOSS, "POST", path)
        assert second["key_id"] == made["key_id"]
        assert (await refused(service, made["key"], "GET", "/v1/whoami"))[0] == 401
        third = await ask(service, BOSS, "POST", path, params={"grace_seconds": 60})
        assert third["grace_until"] is not None
        for key in (second["key"], third["key"]):
            assert (await ask(service, key, "GET", "/v1/whoami"))["key_id"] == made["key_id"]
        await ask(service, BOSS, "POST", path)
        for key in (second["key"], third["key"]):
            assert (await refused(service, key, "GET", "/v1/whoami"))[0] == 401

    async def test_an_expired_key_is_unknown(self, service: Service) -> None:
        made = await make(service, expires_at="2131-04-05T09:30:00+09:00")
        assert (await ask(service, made["key"], "GET", "/v1/whoami"))["expires_at"] == "2131-04-05T00:30:00Z"
        await _rewrite(service, made["key_id"], {"expires_at": "2001-01-01T00:00:00Z"})
        await asyncio.sleep(CACHE_SECONDS)
        assert (await refused(service, made["key"], "GET", "/v1/whoami"))[0] == 401
        assert await refused(
            service, BOSS, "POST", "/v1/admin/keys", json={"agent": "a", "expires_at": "2001-01-01"}
        ) == (422, IsPartialDict(errors=[{"field": "body.expires_at", "message": "lies in the past"}]))

    async def test_all_unknown_keys_get_one_answer(self, service: Service) -> None:
        made = await make(service)
        key_id, key = made["key_id"], made["key"]
        others = (
            "some-key",
            f"hop_{NOBODY}_{'a' * 43}",
            f"hop_{key_id}_{'a' * 43}",
            f"hop_{NOBODY}_{key.rpartition('_')[2]}",
            key[:-1],
            key.swapcase(),
            "a.b.c",
            "x" * 20_000,
        )
        answers = [await refused(service, other, "GET", "/v1/whoami") for other in others]
        assert answers == [(401, answers[0][1])] * len(others)
        await ask(service, key, "GET", "/v1/whoami")

    async def test_a_row_that_is_none_of_ours_opens_nothing(self, service: Service) -> None:
        """Whoever can write the index can't make the pipeline's role of it."""
        for change in ({"roles": ["pipeline"]}, {"tenant": "a/b"}, {"digest": None}, {"created_at": "then"}):
            made = await make(service)
            await _rewrite(service, made["key_id"], change)
            await asyncio.sleep(CACHE_SECONDS)
            assert (await refused(service, made["key"], "GET", "/v1/whoami"))[0] == 401
            listed = await ask(service, BOSS, "GET", "/v1/admin/keys", params={"page_size": 200})
            assert (made["key_id"] in str(listed)) is ("roles" in change or "tenant" in change)

    async def test_another_replicas_revocation_counts_within_the_cache_time(self, service: Service) -> None:
        """It changes the row, and this process isn't told."""
        made = await make(service)
        await ask(service, made["key"], "GET", "/v1/whoami")
        await _rewrite(service, made["key_id"], {"revoked_at": "2031-04-05T00:00:00Z"})
        await asyncio.sleep(CACHE_SECONDS)
        assert (await refused(service, made["key"], "GET", "/v1/whoami"))[0] == 401

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "body.agent"),
            ({"agent": ""}, "body.agent"),
            ({"agent": "a/b"}, "body.agent"),
            ({"agent": ".."}, "body.agent"),
            ({"agent": "a", "roles": []}, "body.roles"),
            ({"agent": "a", "roles": ["pipeline"]}, "body.roles.0"),
            ({"agent": "a", "roles": ["operator"]}, "body.roles.0"),
            ({"agent": "a", "teams": ["x"] * 101}, "body.teams"),
            ({"agent": "a", "teams": ["a b"]}, "body.teams.0"),
            ({"agent": "a", "expires_at": "soon"}, "body.expires_at"),
            ({"agent": "a", "digest": "0" * 64}, "body.digest"),
            ({"agent": 1}, "body.agent"),
        ],
    )
    async def test_a_wrong_body_is_named(self, service: Service, body: Any, field: str) -> None:
        status, answer = await refused(service, BOSS, "POST", "/v1/admin/keys", json=body)
        assert (status, [error["field"] for error in answer["errors"]]) == (422, [field])


class TestRights:
    @pytest.mark.parametrize("roles", [["reader"], ["agent"], ["curator"], ["reader", "agent", "curator"]])
    async def test_only_admins_manage(self, service: Service, roles: list[str]) -> None:
        key = (await make(service, roles=roles))["key"]
        made = (await make(service))["key_id"]
        routes = [
            ("POST", "/v1/admin/keys", {"agent": "a"}),
            ("GET", "/v1/admin/keys", None),
            ("POST", f"/v1/admin/keys/{made}/rotate", None),
            ("DELETE", f"/v1/admin/keys/{made}", None),
            ("DELETE", f"/v1/admin/keys/{NOBODY}", None),
            ("POST", "/v1/admin/tenants", {"tenant": "t"}),
            ("GET", "/v1/admin/tenants", None),
            ("GET", "/v1/admin/tenants/acme", None),
            ("GET", "/v1/admin/tenants/zeta", None),
            ("PUT", "/v1/admin/tenants/acme", {}),
            ("GET", "/v1/admin/audit", None),
        ]
        for method, path, body in routes:
            status, _ = await refused(service, key, method, path, json=body)
            assert status == 403, (method, path)

    async def test_an_admin_of_a_tenant_makes_no_tenants_and_no_keys_of_others(
        self, service: Service
    ) -> None:
        body = {"agent": "a", "tenant": "zeta"}
        foreign = await refused(service, BOSS, "POST", "/v1/admin/keys", json=body)
        unknown = await refused(service, BOSS, "POST", "/v1/admin/keys", json=body | {"tenant": "nowhere"})
        assert foreign == unknown
        assert foreign[0] == 403
        for tenant in (INSTALLATION, "zeta"):
            status, _ = await refused(
                service, BOSS, "POST", "/v1/admin/keys", json={"agent": "a", "tenant": tenant}
            )
            assert status == 403
        assert (await refused(service, BOSS, "POST", "/v1/admin/tenants", json={"tenant": "t1"}))[0] == 403
        assert (await refused(service, BOSS, "PUT", "/v1/admin/tenants/acme", json={"limits": {}}))[0] == 403

    async def test_a_key_of_another_tenant_answers_as_one_that_is_not_there(self, service: Service) -> None:
        theirs = (await make(service, OTHER_BOSS))["key_id"]
        for method, suffix in (("DELETE", ""), ("POST", "/rotate")):
            answers = [
                await refused(service, BOSS, method, f"/v1/admin/keys/{key_id}{suffix}")
                for key_id in (theirs, NOBODY, "x", "*", theirs.upper())
            ]
            assert answers == [(404, answers[0][1])] * 5
            assert answers[0][1]["detail"] == "No such key, or not one that this key may see."
        assert theirs not in str(await ask(service, BOSS, "GET", "/v1/admin/keys?page_size=200"))

    async def test_an_operator_has_no_memory(self, service: Service) -> None:
        for method, path in (
            ("POST", "/v1/search"),
            ("GET", "/v1/entities"),
            ("GET", "/v1/nowhere"),
            ("GET", f"/v1/documents/{NOBODY}"),
        ):
            status, body = await refused(service, OPERATOR, method, path, json={"query": "a"})
            assert (status, body["detail"]) == (
                403,
                "An operator's key manages tenants and keys; it has no memory to read or write.",
            )
        me = await ask(service, OPERATOR, "GET", "/v1/whoami")
        assert (me["operator"], me["tenant"]) == (True, INSTALLATION)

    async def test_an_operator_names_the_tenant_and_makes_operators_that_are_nothing_else(
        self, service: Service
    ) -> None:
        for body, field in (
            ({"agent": "a"}, "body.tenant"),
            ({"agent": "a", "tenant": INSTALLATION}, "body.roles"),
            ({"agent": "a", "tenant": INSTALLATION, "roles": ["admin", "agent"]}, "body.roles"),
            ({"agent": "a", "tenant": INSTALLATION, "roles": ["admin"], "teams": ["x"]}, "body.roles"),
        ):
            status, answer = await refused(service, OPERATOR, "POST", "/v1/admin/keys", json=body)
            assert (status, [error["field"] for error in answer["errors"]]) == (422, [field])
        status, answer = await refused(
            service, OPERATOR, "POST", "/v1/admin/keys", json={"agent": "a", "tenant": "nowhere"}
        )
        assert status == 404
        made = await make(service, OPERATOR, tenant=INSTALLATION, roles=["admin"])
        assert (await ask(service, made["key"], "GET", "/v1/whoami"))["operator"] is True


async def test_a_token_opens_a_tenant_that_was_entered(service: Service) -> None:
    token = ED.sign(tenant="tokens", teams=["ops"], roles=["admin"], exp=4_000_000_000)
    unknown = await refused(service, "some-key", "GET", "/v1/whoami")
    assert await refused(service, token, "GET", "/v1/whoami") == unknown
    await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json={"tenant": "tokens"})
    assert await ask(service, token, "GET", "/v1/whoami") == {
        "tenant": "tokens",
        "agent": "ada",
        "teams": ["ops"],
        "roles": ["admin"],
        "source": "token",
        "key_id": None,
        "expires_at": "2096-10-02T07:06:40Z",
        "operator": False,
    }
    assert (await make(service, token))["tenant"] == "tokens"
    assert await refused(service, ED.sign(tenant=INSTALLATION), "GET", "/v1/whoami") == unknown


async def test_keys_are_paged(service: Service) -> None:
    await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json={"tenant": "many"})
    made = [(await make(service, OPERATOR, tenant="many", agent=f"a{n}"))["key_id"] for n in range(5)]
    told: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        params = {"tenant": "many", "page_size": 2, **cursor}
        page = await ask(service, OPERATOR, "GET", "/v1/admin/keys", params=params)
        told += [key["key_id"] for key in page["keys"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert told == sorted(made)


async def test_failures_are_counted_by_reason(service: Service) -> None:
    def count(reason: str) -> float:
        name = "hopline_auth_failures_total"
        return service.metrics.registry.get_sample_value(name, {"reason": reason}) or 0.0

    before = {reason: count(reason) for reason in ("missing", "unknown")}
    await service.http.get("/v1/whoami")
    await refused(service, f"hop_{NOBODY}_{'b' * 43}", "GET", "/v1/whoami")
    await refused(service, "some-key", "GET", "/v1/whoami")
    assert {reason: count(reason) - before[reason] for reason in before} == {"missing": 1, "unknown": 2}


async def _rewrite(service: Service, key_id: str, change: dict[str, Any]) -> None:
    """The row of a key, as another process (or another hand) leaves it."""
    row_id = f"key/{hashlib.sha256(key_id.encode()).hexdigest()}"
    [stored] = await service.gate.get_many(Index.CONTROL, [RowRef(principal=REGISTRAR, row_id=row_id)])
    assert stored is not None
    row = msgspec.convert(stored.source | {"value": stored.source["value"] | change}, ControlRow)
    write = RowWrite(
        principal=REGISTRAR,
        index=Index.CONTROL,
        row_id=row_id,
        action="replace_if",
        row=row,
        seq_no=stored.seq_no,
        primary_term=stored.primary_term,
    )
    [result] = await service.gate.write([write])
    assert result.status == "applied"
    await service.gate.refresh(Index.CONTROL)
