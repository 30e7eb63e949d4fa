"""What callers hear of faults that aren't theirs: bugs, slowness, a store that is away. And what they must not hear."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from search_api.app import create_app
from search_api.auth import KeyRing
from search_api.edge import RequestEdge
from search_api.identity.key_text import new_key
from search_api.limits import Deadline
from search_api.metrics import ApiMetrics
from search_api.wiring import opened
from tests.api import bearer, embedder, key_of
from tests.api_alone import ME, http_of, running_alone, without_engines

UNKNOWN = "00000000-0000-5000-8000-000000000000"


async def test_a_bug_is_a_problem_without_its_text() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        raise RuntimeError("secret of a memory")

    answer = await _send(RequestEdge(broken, metrics=ApiMetrics(CollectorRegistry())))
    assert answer[0] == 500
    assert b"secret" not in answer[1]


async def test_a_request_that_takes_too_long_is_503() -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        await asyncio.sleep(5)

    metrics = ApiMetrics(CollectorRegistry())
    app = RequestEdge(Deadline(slow, timeout_seconds=0.05, metrics=metrics), metrics=metrics)
    status, body = await _send(app)
    assert (status, json.loads(body)["type"]) == (503, "urn:hopline:problem:too-slow")


async def _send(app: Any) -> tuple[int, bytes]:
    async with http_of(app) as http:
        answer = await http.get("/v1/anything")
        return answer.status_code, answer.content


async def test_with_opensearch_away_searches_are_503_and_health_is_not(tmp_path: Path) -> None:
    async with running_alone(tmp_path) as http:
        searched = await http.post("/v1/search", json={"query": "a"}, headers=bearer(ME))
        read = await http.get(f"/v1/documents/{UNKNOWN}/content", headers=bearer(ME))
        ready = await http.get("/readyz")
        assert (await http.get("/healthz")).status_code == 200
    for answer in (searched, read, ready):
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:hopline:problem:store-unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert "127.0.0.1" not in answer.text


async def test_a_key_that_only_the_store_knows_is_not_called_unknown(tmp_path: Path) -> None:
    """Nobody can say that now; a key of the file, and what is written like no key, need no store."""
    async with running_alone(tmp_path) as http:
        answers = [
            await http.get("/v1/whoami", headers={"authorization": f"Bearer {key}"})
            for key in (new_key().text, new_key().text, "hop_short", key_of(ME))
        ]
    assert [answer.status_code for answer in answers] == [503, 503, 401, 200]
    assert answers[0].json()["type"] == "urn:hopline:problem:store-unavailable"
    assert int(answers[0].headers["retry-after"]) >= 1


async def test_a_search_that_fails_while_its_vector_is_made_leaves_no_fault_unheard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its words are asked for by then; both requests fail, and each fault has a reader."""
    async with running_alone(tmp_path) as http:
        answers = [
            await http.post("/v1/search", json={"query": f"tide {n}"}, headers=bearer(ME)) for n in range(3)
        ]
    assert [answer.status_code for answer in answers] == [503, 503, 503]
    gc.collect()
    await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_bug_of_a_search_is_a_problem_without_its_text(tmp_path: Path) -> None:
    settings, metrics = without_engines(tmp_path), ApiMetrics(CollectorRegistry())
    async with opened(settings, embedder=embedder(), metrics=metrics) as (services, _):
        app = create_app(services, keys=KeyRing(settings.keys_file), settings=settings.api)
    # Closed by now: its threads take no work, which no search foresees.
    answers = []
    async with http_of(app) as http:
        for kind in ("application/json", "application/json; charset=utf-8"):
            headers = {**bearer(ME), "content-type": kind, "x-request-id": "one"}
            answer = await http.post("/v1/search", content=b'{"query": "secret"}', headers=headers)
            answers.append((answer.status_code, answer.headers["content-type"], answer.content))
    assert answers[0] == answers[1]
    assert answers[0][:2] == (500, "application/problem+json")
    assert json.loads(answers[0][2])["type"] == "urn:hopline:problem:internal-error"
