"""Every refusal: its status, its problem document, and what it must not say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from dirty_equals import IsStr
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from indexers.settings import EmbedderSettings, ExtractorSettings, IndexingSettings, OpenSearchSettings
from search_api.app import create_app, openapi_document
from search_api.auth import KeyRing
from search_api.context.settings import ContextSettings
from search_api.edge import RequestEdge
from search_api.keys import store_key
from search_api.limits import Deadline
from search_api.metrics import ApiMetrics
from search_api.serve import ServeSettings, opened
from search_api.settings import ApiSettings, SearchSettings
from streams.settings import KafkaSettings
from tests.api import (
    NO_BROKER,
    Service,
    bearer,
    embedder,
    key_of,
    principal,
    running_service,
    vault,
)
from tests.conftest import Stack
from tests.pipeline import free_port

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


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        f"Basic {key_of(ME)}",
        "Bearer wrong",
        key_of(ME),
        f"Bearer {key_of(ME)}x",
        "Bearer \xff",
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "/v1/search",
        f"/v1/documents/{UNKNOWN}",
        "/v1/entities",
        f"/v1/entities/{UNKNOWN}/mentions",
        "/v1/namespaces/shared/labels",
        "/openapi.json",
        "/nowhere",
        "/",
    ],
)
async def test_nothing_answers_without_a_key(service: Service, header: str | None, path: str) -> None:
    headers = [] if header is None else [(b"authorization", header.encode("latin-1"))]
    answer = await service.http.request("POST" if path == "/v1/search" else "GET", path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="hopline"'
    assert answer.json() == {
        "type": "urn:hopline:problem:unauthorized",
        "title": "Unauthorized",
        "status": 401,
        "detail": "Give a key that this service knows: `Authorization: Bearer KEY`.",
        "request_id": IsStr(min_length=8),
    }


async def test_two_authorization_headers_are_none(service: Service) -> None:
    value = f"Bearer {key_of(ME)}"
    answer = await service.http.get(
        "/openapi.json", headers=[("authorization", value), ("authorization", value)]
    )
    assert answer.status_code == 401


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


async def test_a_bug_is_a_problem_without_its_text(service: Service) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        raise RuntimeError("secret of a memory")

    answer = await _send(RequestEdge(broken, metrics=service.metrics))
    assert answer[0] == 500
    assert b"secret" not in answer[1]


async def test_a_request_that_takes_too_long_is_503(service: Service) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        await asyncio.sleep(5)

    app = RequestEdge(Deadline(slow, timeout_seconds=0.05, metrics=service.metrics), metrics=service.metrics)
    status, body = await _send(app)
    assert (status, json.loads(body)["type"]) == (503, "urn:hopline:problem:too-slow")


async def _send(app: Any) -> tuple[int, bytes]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://hopline") as http:
        answer = await http.get("/v1/anything")
        return answer.status_code, answer.content


def without_engines(folder: Path) -> ServeSettings:
    """With a key for `ME`."""
    store_key(folder / "keys.json", key_of(ME), ME)
    return ServeSettings(
        prefix="away",
        opensearch_url=f"http://127.0.0.1:{free_port()}",
        opensearch=OpenSearchSettings(),
        kafka_servers=NO_BROKER,
        kafka=KafkaSettings(),
        embedder=EmbedderSettings(),
        extractor=ExtractorSettings(),
        indexing=IndexingSettings(),
        vaults=(),
        api=ApiSettings(),
        search=SearchSettings(),
        context=ContextSettings(),
        keys_file=folder / "keys.json",
    )


async def test_with_opensearch_away_searches_are_503_and_health_is_not(tmp_path: Path) -> None:
    settings = without_engines(tmp_path)
    async with opened(settings, embedder=embedder(), metrics=ApiMetrics(CollectorRegistry())) as (
        services,
        _,
    ):
        app = create_app(services, keys=KeyRing(settings.keys_file), settings=settings.api)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://hopline") as http:
            searched = await http.post("/v1/search", json={"query": "a"}, headers=bearer(ME))
            read = await http.get(f"/v1/documents/{UNKNOWN}/content", headers=bearer(ME))
            ready = await http.get("/readyz")
            assert (await http.get("/healthz")).status_code == 200
    for answer in (searched, read, ready):
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:hopline:problem:store-unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert "127.0.0.1" not in answer.text


async def test_a_bug_of_a_search_is_a_problem_without_its_text(tmp_path: Path) -> None:
    settings, metrics = without_engines(tmp_path), ApiMetrics(CollectorRegistry())
    async with opened(settings, embedder=embedder(), metrics=metrics) as (services, _):
        app = create_app(services, keys=KeyRing(settings.keys_file), settings=settings.api)
    # Closed by now: its threads take no work, which no search foresees.
    answers = []
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://hopline") as http:
        for kind in ("application/json", "application/json; charset=utf-8"):
            headers = {**bearer(ME), "content-type": kind, "x-request-id": "one"}
            answer = await http.post("/v1/search", content=b'{"query": "secret"}', headers=headers)
            answers.append((answer.status_code, answer.headers["content-type"], answer.content))
    assert answers[0] == answers[1]
    assert answers[0][:2] == (500, "application/problem+json")
    assert json.loads(answers[0][2])["type"] == "urn:hopline:problem:internal-error"


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
