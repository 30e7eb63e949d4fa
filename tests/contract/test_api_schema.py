"""Requests that the OpenAPI document allows and such that it forbids: no fault, and no status that it doesn't name."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
import pytest_asyncio
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from search_api.app import openapi_document
from tests.conftest import Stack
from tests.wall_world import ASKERS, WallWorld, opened_world

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

#: Of each operation, and of each way to make them: valid and not.
SHORT: Final = 2
LONG: Final = 20_000
#: What only a service can answer whose store, broker or vault is away; here they are there.
_AWAY: Final = 503
_URL_MAX: Final = 60_000
_ADDRESS: Final = "http://hopline"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WallWorld]:
    async with opened_world(stack, folder_of(tmp_path_factory)) as opened:
        yield opened


def folder_of(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("schema")


def cases(each: int) -> Iterator[tuple[Any, requests.PreparedRequest]]:
    """The operation as the document describes it, and a request to it."""
    document = openapi_document()
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]  # ours are all well formed
        described = document["paths"][operation.path][operation.method.lower()]
        for mode in schemathesis.GenerationMode:
            for case in generated(operation.as_strategy(generation_mode=mode), each):
                yield described, requests.Request(**case.as_transport_kwargs(base_url=_ADDRESS)).prepare()


def generated(strategy: Any, each: int) -> list[Any]:
    made: list[Any] = []

    @settings(
        max_examples=each,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def make(case: Any) -> None:
        made.append(case)

    # Nothing that an operation without parameters could be given is wrong.
    with contextlib.suppress(Unsatisfiable):
        make()
    return made[:each]


async def check(
    http: httpx2.AsyncClient, described: Any, request: requests.PreparedRequest, key: str | None
) -> int:
    headers = {name: _text(value) for name, value in request.headers.items()}
    headers.pop("Content-Length", None)
    if key is not None:
        headers = {n: v for n, v in headers.items() if n.lower() != "authorization"}
        headers["authorization"] = f"Bearer {key}"
    answer = await http.request(
        str(request.method), str(request.url), headers=_plain(headers), content=_bytes(request.body)
    )
    told = f"{request.method} {request.url} {request.body!r} → {answer.status_code} {answer.text[:500]}"
    assert answer.status_code < 500, told
    responses = described["responses"]
    assert str(answer.status_code) in responses, told
    content = responses[str(answer.status_code)].get("content", {})
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if content:
        assert kind in content, told
        schema = content[kind]["schema"]
        components = openapi_document_once()["components"]
        Draft202012Validator({**schema, "components": components}).validate(answer.json())
    return answer.status_code


_document: dict[str, Any] = {}


def openapi_document_once() -> dict[str, Any]:
    if not _document:
        _document.update(openapi_document())
    return _document


def _bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else body or b""


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _plain(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


async def run(world: WallWorld, each: int) -> Counter[int]:
    statuses: Counter[int] = Counter()
    for number, (described, request) in enumerate(cases(each)):
        # Some without a key, or with one that nobody has: as they were made.
        key = None if number % 5 == 0 else ASKERS[number % len(ASKERS)].key
        # A client refuses to send what is longer.
        if len(str(request.url)) < _URL_MAX:
            statuses[await check(world.service.http, described, request, key)] += 1
    return statuses


async def test_requests_by_the_document_get_answers_by_the_document(world: WallWorld) -> None:
    statuses = await run(world, SHORT)
    assert {200, 401, 404, 422} <= set(statuses)


@pytest.mark.soak
async def test_twenty_thousand_requests_by_the_document_get_answers_by_the_document(world: WallWorld) -> None:
    operations = sum(len(ops) for ops in openapi_document()["paths"].values())
    # Not all can be made or sent (no wrong request without parameters, addresses too long): a fifth more.
    statuses = await run(world, LONG * 6 // (5 * 2 * operations) + 1)
    assert sum(statuses.values()) >= LONG
