"""The two sides of `bench.query`: a search over HTTP, and the embedding with what the search sends to the engine."""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import uvloop
from opensearchpy import AsyncOpenSearch

from bench.notes import query
from bench.sent import Recorded, recorder
from indexers.domain.identity import Principal
from indexers.ports import Embedder
from search_api.requests import SearchRequest
from search_api.settings import SearchSettings
from tests.pipeline import KEY, Pipeline

WARM_UP: Final = 100
Kind = Literal["plain", "graph"]
#: What is asked of the service beside the query.
ASKED: Final[dict[Kind, dict[str, Any]]] = {"plain": {"parts": ["keyword", "vector"]}, "graph": {}}
STEPS: Final = ("embed", "recall", "graph", "look_up", "excerpts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    pipeline: Pipeline
    principal: Principal
    embedder: Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    figures: dict[str, Any]
    ratio: float
    round_trips_max: int
    next_query: int


@dataclass(kw_only=True)
class Post:
    """One connection that stays open."""

    url: str
    path: str
    headers: dict[str, str]

    def __post_init__(self) -> None:
        place = urlsplit(self.url)
        self._connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)

    def __call__(self, body: bytes) -> Any:
        self._connection.request("POST", self.path, body, self.headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise RuntimeError(f"{self.path} answered {response.status}: {answer}")
        return answer


def both_sides(rig: Rig, kind: Kind, *, first: int, count: int) -> Sides:
    """Queries `first` and on, each both ways, in turns which goes first."""
    numbers = range(first, first + WARM_UP + count)
    requests = [SearchRequest.model_validate({"query": query(n), **ASKED[kind]}) for n in numbers]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        try:
            found, client = runner.run(
                stack.enter_async_context(recorder(rig.pipeline, rig.principal, rig.embedder))
            )
            recorded = [runner.run(found.record(request)) for request in requests]
            raw = RawSearch(rig) if kind == "plain" else Replay(rig, client, runner)
            taken, steps = _in_turns(Service(rig, kind), raw, dict(zip(numbers, recorded, strict=True)))
        finally:
            runner.run(stack.aclose())
    service, other = summary(taken["service"]), summary(taken["raw"])
    ratio = service["p50_ms"] / other["p50_ms"]
    trips = [one.round_trips for one in recorded[WARM_UP:]]
    figures = {
        "ratio": round(ratio, 3),
        "ratio_p95": round(service["p95_ms"] / other["p95_ms"], 3),
        "service": service,
        "raw": other,
        "service_steps_mean_ms": steps,
        "round_trips_mean": round(statistics.mean(trips), 2),
        "round_trips_max": max(trips),
        "requests_mean": round(statistics.mean(len(one.sent) for one in recorded[WARM_UP:]), 2),
        "sent_bytes_mean": round(statistics.mean(sum(len(s.body) for s in one.sent) for one in recorded)),
    }
    return Sides(figures=figures, ratio=ratio, round_trips_max=max(trips), next_query=numbers.stop)


def _in_turns(
    service: Service, raw: RawSearch | Replay, recorded: Mapping[int, Recorded]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Milliseconds of each side after the warm-up, and the mean of the service's steps."""
    taken: dict[str, list[float]] = {"service": [], "raw": []}
    sums = service.step_sums()
    for place, (number, one) in enumerate(recorded.items()):
        if place == WARM_UP:
            sums = service.step_sums()
        for name, side in [("service", service), ("raw", raw)][:: 1 if number % 2 else -1]:
            spent = side(number, one)
            if place >= WARM_UP:
                taken[name].append(spent)
    return taken, service.step_means(since=sums, searches=len(taken["service"]))


def round_trips(rig: Rig, *, depth: int, first: int, count: int) -> list[int]:
    """Of default requests that ask for this depth."""

    async def counted() -> list[int]:
        options = {"graph": {"depth": depth}}
        async with recorder(rig.pipeline, rig.principal, rig.embedder) as (found, _):
            requests = [
                SearchRequest.model_validate({"query": query(number), "options": options})
                for number in range(first, first + count)
            ]
            return [(await found.record(request)).round_trips for request in requests]

    return asyncio.run(counted())


def summary(milliseconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(milliseconds, n=20)
    return {
        "p50_ms": round(statistics.median(milliseconds), 2),
        "p95_ms": round(cuts[18], 2),
        "least_ms": round(min(milliseconds), 2),
    }


class RawSearch:
    """The query's vector and one `_msearch` of all that the recall searches for, over one connection."""

    def __init__(self, rig: Rig) -> None:
        headers = {"Content-Type": "application/x-ndjson"}
        self._post = Post(url=rig.pipeline.opensearch_url, path="/_msearch", headers=headers)
        self._embedder = rig.embedder

    def __call__(self, number: int, recorded: Recorded) -> float:
        body = recorded.joined[0].body
        start = time.perf_counter()
        self._embedder.embed_query(query(number)).tolist()
        answer = self._post(body)
        spent = (time.perf_counter() - start) * 1_000
        if any("error" in response for response in answer["responses"]):
            raise RuntimeError(str(answer)[:500])
        return spent


class Replay:
    """The query's vector and every request, one after another, by the product's client; the recall's two as one."""

    def __init__(self, rig: Rig, client: AsyncOpenSearch, runner: asyncio.Runner) -> None:
        self._embedder = rig.embedder
        self._client = client
        self._runner = runner

    def __call__(self, number: int, recorded: Recorded) -> float:
        return self._runner.run(self._again(query(number), recorded))

    async def _again(self, text: str, recorded: Recorded) -> float:
        start = time.perf_counter()
        self._embedder.embed_query(text).tolist()
        for sent in recorded.joined:
            await sent.again(self._client)
        return (time.perf_counter() - start) * 1_000


class Service:
    """`hopline api`, asked over one connection."""

    def __init__(self, rig: Rig, kind: Kind, *, query: Callable[[int], str] = query) -> None:
        self._query = query
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        self._pipeline = rig.pipeline
        self._post = Post(url=rig.pipeline.api_url, path="/v1/search", headers=headers)
        self._asked = ASKED[kind]

    def __call__(self, number: int, expected: Recorded | None) -> float:
        """Milliseconds. RuntimeError where the answer is not what a user would get, or another than was recorded."""
        body = json.dumps({"query": self._query(number), **self._asked}).encode()
        start = time.perf_counter()
        answer = self._post(body)
        spent = (time.perf_counter() - start) * 1_000
        hits = answer["hits"]
        if len(hits) < SearchSettings().page_size or any(hit["stale_excerpt"] for hit in hits):
            raise RuntimeError("an answer is not what a user would get")
        if expected is not None and tuple(hit["doc_id"] for hit in hits) != expected.doc_ids:
            raise RuntimeError("the service answered other documents than the recorded search")
        return spent

    def step_sums(self) -> dict[str, float]:
        return {step: self._sum(step) for step in STEPS}

    def step_means(self, *, since: dict[str, float], searches: int) -> dict[str, float]:
        return {step: round((self._sum(step) - since[step]) / searches * 1_000, 2) for step in STEPS}

    def _sum(self, step: str) -> float:
        return self._pipeline.metric("api", f'hopline_search_step_seconds_sum{{step="{step}"}}')
