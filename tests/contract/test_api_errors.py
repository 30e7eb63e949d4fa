"""Every refusal of a wrong request: its status, its problem document, and what it must not say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from search_api.app import openapi_document
from search_api.settings import ApiSettings
from tests.api import (
    Service,
    bearer,
    principal,
    running_service,
    vault,
)
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ME = principal("acme")
UNKNOWN = "00000000-0000-5000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("errors")
    root = vault(folder / "vault", {"a.md": "# A\n\nsee [[b]]\n", "b.md": "# B\n\nsee [[a]]\n"})
    api = ApiSettings(body_max_bytes=4_096)
    async with running_service(
        stack.opensearch_url, folder, vaults=[root], principals=[ME], api=api
    ) as running:
        yield running


async def refused(service: Service, body: Any, status: int = 422, **headers: str) -> dict[str, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await service.http.post(
        "/v1/search", content=content, headers={**bearer(ME), "content-type": "application/json", **headers}
    )
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["status"] == status
    return problem


FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("no query", {}, "body.query"),
    ("empty query", {"query": ""}, "body.query"),
    ("blank query", {"query": " \n\t "}, "body.query"),
    ("query of another type", {"query": 7}, "body.query"),
    ("query null", {"query": None}, "body.query"),
    ("NUL in the query", {"query": "a\u0000b"}, "body.query"),
    ("escape in the query", {"query": "a\u001b[2J"}, "body.query"),
    ("C1 control in the query", {"query": "a\u0085b\u009bc"}, "body.query"),
    ("lone surrogate", {"query": "a\ud800"}, "body.query"),
    ("query too long", {"query": "x" * 2_001}, "body.query"),
    ("unknown field", {"query": "a", "pagesize": 3}, "body.pagesize"),
    ("surrogate as a field", {"query": "a", "\ud800": 3}, "body"),
    ("page size as text", {"query": "a", "page_size": "3"}, "body.page_size"),
    ("page size as boolean", {"query": "a", "page_size": True}, "body.page_size"),
    ("page size 0", {"query": "a", "page_size": 0}, "body.page_size"),
    ("page size over the limit", {"query": "a", "page_size": 101}, "body.page_size"),
    ("huge page size", {"query": "a", "page_size": 10**30}, "body.page_size"),
    ("unknown type", {"query": "a", "filters": {"doc_type": ["bogus"]}}, "body.filters.doc_type.0"),
    ("no parts", {"query": "a", "parts": []}, "body.parts"),
    ("unknown part", {"query": "a", "parts": ["magic"]}, "body.parts.0"),
    ("filters of another type", {"query": "a", "filters": []}, "body.filters"),
    ("unknown filter", {"query": "a", "filters": {"tenant": "x"}}, "body.filters.tenant"),
    ("tags as text", {"query": "a", "filters": {"tags": "x"}}, "body.filters.tags"),
    ("empty tag", {"query": "a", "filters": {"tags": ["ok", ""]}}, "body.filters.tags.1"),
    ("unknown scope", {"query": "a", "filters": {"scope": ["everyone"]}}, "body.filters.scope.0"),
    ("no date", {"query": "a", "filters": {"updated_from": "yesterday"}}, "body.filters.updated_from"),
    ("number as date", {"query": "a", "filters": {"updated_from": 5}}, "body.filters.updated_from"),
    (
        "date out of range",
        {"query": "a", "filters": {"updated_from": "0001-01-01T00:00:00+14:00"}},
        "body.filters.updated_from",
    ),
    ("cursor of another type", {"query": "a", "cursor": 5}, "body.cursor"),
    ("cursor that is none", {"query": "a", "cursor": "bm9uZQ"}, "body.cursor"),
    ("cursor that is no ASCII", {"query": "a", "cursor": "é\ud800"}, "body.cursor"),
    ("empty cursor", {"query": "a", "cursor": ""}, "body.cursor"),
]


@pytest.mark.parametrize(("body", "field"), [pytest.param(b, f, id=name) for name, b, f in FIELDS])
async def test_a_wrong_field_is_named(service: Service, body: dict[str, Any], field: str) -> None:
    problem = await refused(service, body)
    assert field in [error["field"] for error in problem["errors"]]
    assert all(error["message"] for error in problem["errors"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"[" * 4_000,
        b"null",
        b'"text"',
        b"[]",
        b'{"query": NaN}',
        b"1e999",
    ],
)
async def test_a_body_that_is_no_request(service: Service, body: bytes) -> None:
    problem = await refused(service, body)
    assert problem["errors"][0]["field"].startswith("body")


async def test_a_query_is_never_repeated_in_an_error(service: Service) -> None:
    problem = await refused(
        service, {"query": "secretword\u0000", "page_size": "secretsize", "cursor": "secretcursor"}
    )
    assert "secret" not in json.dumps(problem)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/json-ish"]
)
async def test_another_media_type(service: Service, kind: str) -> None:
    problem = await refused(service, {"query": "a"}, 415, **{"content-type": kind})
    assert problem["type"] == "urn:hopline:problem:unsupported-media-type"


async def test_json_with_a_charset_is_json(service: Service) -> None:
    headers = {**bearer(ME), "content-type": "application/json; charset=utf-8"}
    answer = await service.http.post("/v1/search", content=b'{"query": "a"}', headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        # One page: a cursor carries the clock.
        b'{"query": "see", "page_size": 50}',
        b'{"query": "see", "filters": {"scope": ["shared"], "updated_from": "2020-01-01"}}',
        b'{"query": "see", "parts": ["keyword"], "page_size": 101}',
        b'{"query": "see", "cursor": "bm9uZQ"}',
        b'{"query": "see", "page_size": 0}',
        b"{",
    ],
)
async def test_the_short_way_of_a_search_answers_as_the_framework_does(service: Service, body: bytes) -> None:
    answers = []
    # Only the plain type takes the short way (`search_api.direct`).
    for kind in ("application/json", "application/json; charset=utf-8"):
        headers = {**bearer(ME), "content-type": kind, "x-request-id": "one"}
        answer = await service.http.post("/v1/search", content=body, headers=headers)
        answers.append((answer.status_code, sorted(answer.headers.items()), answer.content))
    assert answers[0] == answers[1]


async def test_a_body_over_the_limit_declared_or_not(service: Service) -> None:
    await refused(service, {"query": "a" * 5_000}, 413)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 1_000

    headers = {**bearer(ME), "content-type": "application/json"}
    answer = await service.http.post("/v1/search", content=endless(), headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:hopline:problem:body-too-large")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_operations_answer_without_a_key(service: Service, path: str) -> None:
    answer = await service.http.get(path)
    assert answer.status_code == 200
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("suffix", ["", "/content", "/links", "/backlinks"])
async def test_an_unknown_id_is_404_whatever_it_looks_like(service: Service, suffix: str) -> None:
    bodies = set()
    for doc_id in (
        UNKNOWN,
        "x",
        "a" * 3_000,
        "%00",
        "..%2f..",
        UNKNOWN.upper().replace("0", "A"),
        "%ED%A0%80",
    ):
        answer = await service.get(ME, f"/v1/documents/{doc_id}{suffix}", **{"x-request-id": "one"})
        assert answer.status_code == 404, doc_id
        bodies.add((answer.content, tuple(sorted(answer.headers.items()))))
    assert len(bodies - {next(iter(bodies))}) <= 1  # an encoded slash is another route


async def test_unknown_routes_and_methods(service: Service) -> None:
    nowhere = await service.get(ME, "/v2/search")
    assert (nowhere.status_code, nowhere.json()["type"]) == (404, "urn:hopline:problem:no-such-route")
    wrong = await service.get(ME, "/v1/search")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("suffix", "field"),
    [
        ("/content?start=-1", "query.start"),
        ("/content?start=x", "query.start"),
        ("/content?start=99999999999999999999", "query.start"),
        ("/content?max_chars=0", "query.max_chars"),
        ("/content?max_chars=65537", "query.max_chars"),
        ("/links?page_size=0", "query.page_size"),
        ("/links?cursor=x", "query.cursor"),
        ("/backlinks?page_size=501", "query.page_size"),
        ("/backlinks?cursor=%ED%A0%80", "query.cursor"),
    ],
)
async def test_wrong_parameters_are_named(service: Service, suffix: str, field: str) -> None:
    answer = await service.get(ME, f"/v1/documents/{service.ids[('vault', 'a.md')]}{suffix}")
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_a_cursor_belongs_to_its_list_and_can_not_be_bent(service: Service) -> None:
    answer = await service.search(ME, "see", page_size=1)
    cursor = answer["next_cursor"]
    assert (await service.search(ME, "see", page_size=2, cursor=cursor))["hits"]
    for body in (
        {"query": "other", "cursor": cursor},
        {"query": "see", "cursor": cursor, "parts": ["keyword"]},
        {"query": "see", "cursor": cursor, "filters": {"tags": ["x"]}},
        *({"query": "see", "cursor": cursor[:n]} for n in range(0, len(cursor), 7)),
        *({"query": "see", "cursor": cursor[:n] + "A" + cursor[n + 1 :]} for n in (0, 5, 20)),
    ):
        problem = await refused(service, body)
        assert [error["field"] for error in problem["errors"]] == ["body.cursor"]


async def test_a_callers_request_id_is_kept_when_it_is_harmless(service: Service) -> None:
    for given, kept in (("abc-1.2_3", True), ("with space", False), ("x" * 65, False), ("a\tb", False)):
        answer = await service.get(ME, "/healthz", **{"x-request-id": given})
        assert (answer.headers["x-request-id"] == given) is kept


async def test_every_status_seen_is_in_the_description(service: Service) -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    known = f"/v1/documents/{UNKNOWN}"
    for path in ("/healthz", "/readyz", known, f"{known}/content", f"{known}/links", f"{known}/backlinks"):
        await service.http.get(path, headers=bearer(ME))
    for body in ({"query": "a"}, {"query": ""}):
        await service.http.post("/v1/search", json=body, headers=bearer(ME))
    text = (await service.http.get("/metrics")).text
    seen = {
        (sample.labels["route"], sample.labels["status"])
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "hopline_http_request_seconds_count" and sample.labels["route"] != "other"
    }
    paths = ("", "/content", "/links", "/backlinks")
    assert seen >= {
        ("/healthz", "200"),
        ("/readyz", "200"),
        ("/v1/search", "200"),
        ("/v1/search", "422"),
        *((f"/v1/documents/{{doc_id}}{path}", "404") for path in paths),
    }
    for route, status in seen:
        described = {code for method in document["paths"][route].values() for code in method["responses"]}
        assert status in described, (route, status)
