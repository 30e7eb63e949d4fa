"""Without a key the service tells nothing, not even which routes there are."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio
from dirty_equals import IsStr

from tests.api import bearer, key_of
from tests.api_alone import ME, running_alone

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNKNOWN = "00000000-0000-5000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    """No engine is asked before a key is known."""
    async with running_alone(tmp_path_factory.mktemp("unauthorized")) as client:
        yield client


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
async def test_nothing_answers_without_a_key(http: httpx2.AsyncClient, header: str | None, path: str) -> None:
    headers = [] if header is None else [(b"authorization", header.encode("latin-1"))]
    answer = await http.request("POST" if path == "/v1/search" else "GET", path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="hopline"'
    assert answer.json() == {
        "type": "urn:hopline:problem:unauthorized",
        "title": "Unauthorized",
        "status": 401,
        "detail": "Give a key that this service knows: `Authorization: Bearer KEY`.",
        "request_id": IsStr(min_length=8),
    }


async def test_two_authorization_headers_are_none(http: httpx2.AsyncClient) -> None:
    value = f"Bearer {key_of(ME)}"
    answer = await http.get("/openapi.json", headers=[("authorization", value), ("authorization", value)])
    assert answer.status_code == 401


async def test_the_key_opens_it(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/openapi.json", headers=bearer(ME))).status_code == 200
