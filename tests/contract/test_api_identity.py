"""Keys and tenants of the register, through the routes and over the real store."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from dirty_equals import IsInt, IsPartialDict, IsStr

from indexers.domain.identity import INSTALLATION
from search_api.settings import ApiSettings
from tests.api import Service, bearer, principal, running_service
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

CACHE_SECONDS = 0.2
OPERATOR = dataclasses.replace(principal(INSTALLATION, "operator"), roles=("admin",))
BOSS = dataclasses.replace(principal("acme", "boss"), roles=("admin",))
OTHER_BOSS = dataclasses.replace(principal("zeta", "boss"), roles=("admin",))
ADA = principal("acme", "ada")
NOBODY = "0123456789abcdef"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    async with running_service(
        stack.opensearch_url,
        tmp_path_factory.mktemp("identity"),
        principals=[OPERATOR, BOSS, OTHER_BOSS, ADA],
        api=ApiSettings(key_cache_seconds=CACHE_SECONDS),
    ) as opened:
        yield opened


async def ask(
    service: Service, who: Any, method: str, path: str, status: int = 200, **options: Any
) -> dict[str, Any]:
    """`who`: a principal of the key file, or a key."""
    headers = {"authorization": f"Bearer {who}"} if isinstance(who, str) else bearer(who)
    answer = await service.http.request(method, path, headers=headers | options.pop("headers", {}), **options)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def make(service: Service, who: Any = BOSS, **body: Any) -> dict[str, Any]:
    return await ask(service, who, "POST", "/v1/admin/keys", 201, json={"agent": "nia", **body})


async def refused(service: Service, who: Any, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """Status and the answer without its request id."""
    headers = {"authorization": f"Bearer {who}"} if isinstance(who, str) else bearer(who)
    answer = await service.http.request(method, path, headers=headers, **options)
    body = answer.json()
    body.pop("request_id")
    return answer.status_code, body


async def audited(service: Service, who: Any, **params: Any) -> list[dict[str, Any]]:
    await service.gate.refresh()
    return list((await ask(service, who, "GET", "/v1/admin/audit", params=params))["entries"])


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
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        made = await make(service, expires_at=soon.isoformat())
        await ask(service, made["key"], "GET", "/v1/whoami")
        await asyncio.sleep(0.4)
        assert (await refused(service, made["key"], "GET", "/v1/whoami"))[0] == 401
        assert await refused(
            service, BOSS, "POST", "/v1/admin/keys", json={"agent": "a", "expires_at": "2001-01-01"}
        ) == (422, IsPartialDict(errors=[{"field": "body.expires_at", "message": "lies in the past"}]))

    async def test_another_replicas_revocation_counts_within_the_cache_time(self, service: Service) -> None:
        """What this process remembers was written over by another's change in the store."""
        made = await make(service)
        await ask(service, made["key"], "GET", "/v1/whoami")
        await ask(service, BOSS, "DELETE", f"/v1/admin/keys/{made['key_id']}")
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


class TestTenants:
    async def test_a_tenant_is_entered_and_gets_its_first_admin(self, service: Service) -> None:
        body = {"tenant": "umbra", "note": "회의 팀", "limits": {"writes_per_second": 3}}
        made = await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json=body)
        assert made == {
            "tenant": "umbra",
            "state": "active",
            "note": "회의 팀",
            "limits": {"writes_per_second": 3.0},
            "limits_in_force": IsPartialDict(writes_per_second=3.0, requests_burst=IsInt()),
            "created_at": IsStr(),
            "created_by": "hopline/operator",
        }
        admin = await make(service, OPERATOR, tenant="umbra", agent="head", roles=["admin"])
        assert await ask(service, admin["key"], "GET", "/v1/admin/tenants/umbra") == made
        assert await ask(service, admin["key"], "GET", "/v1/admin/tenants") == {
            "tenants": [made],
            "next_cursor": None,
        }
        names = [t["tenant"] for t in (await ask(service, OPERATOR, "GET", "/v1/admin/tenants"))["tenants"]]
        assert "umbra" in names
        assert (await refused(service, OPERATOR, "POST", "/v1/admin/tenants", json=body))[0] == 409

    @pytest.mark.parametrize("name", [INSTALLATION, "", "a/b", "..", "x" * 129, "a b", "\ud800"])
    async def test_a_name_that_is_none(self, service: Service, name: str) -> None:
        content = (
            b'{"tenant": "\\ud800"}'
            if name == "\ud800"
            else httpx2.Request("POST", "http://x", json={"tenant": name}).content
        )
        headers = {"content-type": "application/json"}
        answer = await service.http.post(
            "/v1/admin/tenants", content=content, headers=headers | bearer(OPERATOR)
        )
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "body.tenant")

    async def test_another_tenant_answers_as_one_that_is_not_there(self, service: Service) -> None:
        await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json={"tenant": "hidden"})
        for method, body in (("GET", None), ("PUT", {"suspended": True})):
            answers = [
                await refused(service, BOSS, method, f"/v1/admin/tenants/{name}", json=body)
                for name in ("hidden", "nowhere", "hopline", "%2e%2e", "회의")
            ]
            assert answers == [(404, answers[0][1])] * 5

    async def test_a_suspended_tenant_is_refused_until_it_is_taken_again(self, service: Service) -> None:
        await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json={"tenant": "slow"})
        key = (await make(service, OPERATOR, tenant="slow"))["key"]
        path = "/v1/admin/tenants/slow"
        await ask(service, key, "GET", "/v1/whoami")
        await ask(service, OPERATOR, "PUT", path, json={"suspended": True})
        assert await refused(service, key, "GET", "/v1/whoami") == (
            403,
            IsPartialDict(type="urn:hopline:problem:tenant-suspended"),
        )
        await ask(service, OPERATOR, "PUT", path, json={"suspended": False})
        await ask(service, key, "GET", "/v1/whoami")

    async def test_a_tenants_own_limits_count(self, service: Service) -> None:
        body = {"tenant": "small", "limits": {"requests_per_second": 0.01, "requests_burst": 2}}
        await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json=body)
        key = (await make(service, OPERATOR, tenant="small"))["key"]
        for _ in range(2):
            await ask(service, key, "GET", "/v1/whoami")
        answer = await service.http.get("/v1/whoami", headers={"authorization": f"Bearer {key}"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, IsStr(regex=r"9\d|100"))
        assert answer.json()["type"] == "urn:hopline:problem:rate-limited"
        await ask(service, OPERATOR, "PUT", "/v1/admin/tenants/small", json={"limits": {}})
        await ask(service, key, "GET", "/v1/whoami")

    @pytest.mark.parametrize(
        ("limits", "field"),
        [
            ({"requests_per_second": -1}, "body.limits.requests_per_second"),
            ({"requests_burst": 0}, "body.limits.requests_burst"),
            ({"requests_burst": "5"}, "body.limits.requests_burst"),
            ({"wishes": 1}, "body.limits.wishes"),
            ({"bytes_per_day": 1e300}, "body.limits.bytes_per_day"),
        ],
    )
    async def test_wrong_limits_are_named(self, service: Service, limits: Any, field: str) -> None:
        status, answer = await refused(
            service, OPERATOR, "POST", "/v1/admin/tenants", json={"tenant": "wrong", "limits": limits}
        )
        assert (status, [error["field"] for error in answer["errors"]]) == (422, [field])


class TestAudit:
    async def test_what_admins_do_stands_in_the_tenants_log(self, service: Service) -> None:
        made = await make(service, roles=["reader"], teams=["ops"])
        await ask(service, BOSS, "POST", f"/v1/admin/keys/{made['key_id']}/rotate")
        await ask(service, BOSS, "DELETE", f"/v1/admin/keys/{made['key_id']}")
        await asyncio.sleep(0.1)
        entries = [e for e in await audited(service, BOSS) if e["target"] == made["key_id"]]
        base = {
            "entry_id": IsStr(),
            "at": IsStr(),
            "by_tenant": "acme",
            "by_agent": "boss",
            "by_key": None,
            "outcome": "done",
            "target": made["key_id"],
            "request_id": IsStr(),
        }
        # Two of one millisecond may stand in either order.
        assert sorted(entries, key=lambda e: str(e["action"])) == [
            base | {"action": "key.create", "detail": {"agent": "nia", "roles": "reader", "teams": "ops"}},
            base | {"action": "key.revoke", "detail": {}},
            base | {"action": "key.rotate", "detail": {"grace_seconds": "0"}},
        ]
        assert made["key"] not in str(await audited(service, BOSS, page_size=200))

    async def test_refusals_and_names_of_other_tenants_are_audited(self, service: Service) -> None:
        key = await make(service)
        headers = {"authorization": f"Bearer {key['key']}"}
        http = service.http
        answers = [
            await http.get("/v1/admin/keys", headers=headers),
            await http.get("/v1/whoami", headers=headers | {"x-hopline-tenant": "zeta"}),
            await http.get("/v1/whoami?tenant=zeta", headers=headers),
            await http.post(
                "/v1/search", json={"query": "a", "filters": {"tenant": "zeta"}}, headers=headers
            ),
            await http.post("/v1/search", json={"query": "a", "tenant_id": "zeta"}, headers=headers),
            await http.get("/v1/whoami", headers=headers | {"x-hopline-tenant": "acme"}),
        ]
        assert [answer.status_code for answer in answers] == [403, 403, 403, 422, 422, 200]
        await asyncio.sleep(0.1)
        entries = await audited(service, BOSS, page_size=200)
        mine = sorted((e["action"], e["target"]) for e in entries if e["by_key"] == key["key_id"])
        assert mine == [
            ("request.cross_tenant", "GET other"),
            ("request.cross_tenant", "GET other"),
            ("request.cross_tenant", "POST /v1/search"),
            ("request.cross_tenant", "POST /v1/search"),
            ("request.denied", "GET /v1/admin/keys"),
        ]

    async def test_each_admin_reads_the_own_log_only_and_an_operator_any(self, service: Service) -> None:
        made = await make(service, OTHER_BOSS)
        await asyncio.sleep(0.1)
        theirs = await audited(service, OTHER_BOSS, page_size=200)
        assert made["key_id"] in {entry["target"] for entry in theirs}
        assert made["key_id"] not in str(await audited(service, BOSS, page_size=200))
        assert await audited(service, OPERATOR, tenant="zeta", page_size=200) == theirs
        status, _ = await refused(service, BOSS, "GET", "/v1/admin/audit?tenant=zeta")
        assert status == 403

    async def test_what_an_operator_does_for_a_tenant_stands_in_both_logs(self, service: Service) -> None:
        await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json={"tenant": "both"})
        made = await make(service, OPERATOR, tenant="both")
        await asyncio.sleep(0.1)
        for params in ({"tenant": "both"}, {}):
            entries = await audited(service, OPERATOR, page_size=200, **params)
            [entry] = [e for e in entries if e["target"] == made["key_id"]]
            assert (entry["action"], entry["by_tenant"]) == ("key.create", INSTALLATION)

    async def test_the_log_is_paged_newest_first(self, service: Service) -> None:
        await ask(service, OPERATOR, "POST", "/v1/admin/tenants", 201, json={"tenant": "long"})
        admin = (await make(service, OPERATOR, tenant="long", agent="head", roles=["admin"]))["key"]
        for number in range(6):
            await make(service, admin, agent=f"a{number}")
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.1)
        await service.gate.refresh()
        told: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = await ask(service, admin, "GET", "/v1/admin/audit", params={"page_size": 4, **cursor})
            told += [entry["detail"].get("agent", entry["action"]) for entry in page["entries"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert told == ["a5", "a4", "a3", "a2", "a1", "a0", "head", "tenant.create"]
        status, _ = await refused(service, BOSS, "GET", "/v1/admin/audit", params=cursor)
        assert status == 422


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
