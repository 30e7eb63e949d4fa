"""A search's words are asked for while its vector is made: what is found is the same, and nothing is left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from indexers.domain.sources import SOURCE_RANKS
from indexers.errors import Away
from indexers.opensearch.gate import GatedSearch, PreparedSearch, SearchPage
from search_api.metrics import ApiMetrics
from search_api.ranking_settings import RankingRules
from search_api.requests import SearchFilters, SearchRequest
from search_api.retrieval.legs import Asked
from search_api.retrieval.pipeline import Retrieval
from search_api.retrieval.query_vectors import QueryVectors
from search_api.retrieval.recall import Passing, Prepared, Recall
from search_api.retrieval.router import Names, route
from search_api.retrieval.spaces import OneSpace, QuerySpace
from tests.api import Service, embedder, principal, running_service, vault
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ME = principal("acme")
NOW = datetime(2031, 4, 9, tzinfo=UTC)
QUERY = "who mends the tide gauge"
NOTES = {f"{n}.md": f"# Tide gauge {n}\n\nCrew {n} mends the tide gauge at pier {n}.\n" for n in range(4)}
PASSING = Passing(mode="none")
RULES = RankingRules()
ASKED = Asked(
    query=QUERY,
    route=route(QUERY, NOW),
    names=Names(),
    filters=SearchFilters(),
    parts=frozenset(("keyword", "vector")),
    rules=RULES,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("ahead")
    root = vault(folder / "vault", NOTES)
    async with running_service(stack.opensearch_url, folder, vaults=[root], principals=[ME]) as running:
        await running.index(root)
        yield running


@pytest.fixture
def recall(service: Service) -> Recall:
    return Recall(service.gate, filter_ids_max=100)


@pytest.fixture
def prepared(recall: Recall) -> Prepared:
    return recall.prepare(ME, ASKED, PASSING)


async def test_what_is_asked_for_ahead_is_found_as_in_one_request(recall: Recall, prepared: Prepared) -> None:
    async with recall.ahead(prepared) as words:
        pages = await words
        vector = embedder().embed_query(QUERY).tolist()
        in_two = await recall.recall(ME, ASKED, PASSING, words, vector)
    assert len(pages["documents", "keyword"].hits) == len(NOTES)
    assert in_two == await recall.recall(ME, ASKED, PASSING, prepared, vector)


async def test_a_search_that_ends_early_leaves_no_request_behind(
    recall: Recall, prepared: Prepared, service: Service
) -> None:
    before = asyncio.all_tasks()
    for pause in (0.0, 0.001, 0.05):
        with pytest.raises(RuntimeError, match="model"):
            await _fails_after(pause, recall, prepared)
        assert asyncio.all_tasks() == before
    assert len(await service.paths(ME, QUERY)) == len(NOTES)


async def _fails_after(seconds: float, recall: Recall, prepared: Prepared) -> None:
    async with recall.ahead(prepared):
        await asyncio.sleep(seconds)
        raise RuntimeError("model")


async def test_words_are_asked_for_before_the_vector_is_there_and_all_at_once_with_a_known_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    asked = asyncio.Event()
    search_many = service.gate.search_many

    async def noted(searches: Sequence[GatedSearch | PreparedSearch]) -> list[SearchPage]:
        sent.append(len(searches))
        asked.set()
        return await search_many(searches)

    monkeypatch.setattr(service.gate, "search_many", noted)
    request = SearchRequest(query=QUERY, parts=["keyword", "vector"])
    held = threading.Event()
    with ThreadPoolExecutor(1) as model:
        retrieval = _retrieval(service, model)
        model.submit(held.wait)
        finding = asyncio.create_task(retrieval.find(retrieval.begin(ME, request, RULES), NOW))
        try:
            async with asyncio.timeout(20):
                await asked.wait()
            assert not finding.done()
        finally:
            held.set()
        first = await finding
        words, near = sent
        second = await retrieval.find(retrieval.begin(ME, request, RULES), NOW)
    assert sent == [words, near, words + near]
    assert (first.known, first.steps.round_trips) == (second.known, second.steps.round_trips)


async def test_a_search_that_fails_at_its_filter_leaves_no_work_for_the_model(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_searches: Sequence[GatedSearch | PreparedSearch]) -> list[SearchPage]:
        raise Away("OpenSearch", "gone")

    monkeypatch.setattr(service.gate, "search_many", away)
    request = SearchRequest(query=QUERY, filters=SearchFilters(tags=["tide"]))
    held = threading.Event()
    with ThreadPoolExecutor(1) as model:
        model.submit(held.wait)
        try:
            retrieval = _retrieval(service, model)
            begun = retrieval.begin(ME, request, RULES)
            with pytest.raises(Away):
                await retrieval.find(begun, NOW)
            assert begun.vector is not None
            assert begun.vector.cancelled()
        finally:
            held.set()


async def test_words_that_were_refused_are_heard_of_before_vectors_are_searched_for(
    recall: Recall, prepared: Prepared, monkeypatch: pytest.MonkeyPatch, service: Service
) -> None:
    sent: list[int] = []

    async def away(searches: Sequence[GatedSearch | PreparedSearch]) -> list[SearchPage]:
        sent.append(len(searches))
        raise Away("OpenSearch", "gone")

    monkeypatch.setattr(service.gate, "search_many", away)
    async with recall.ahead(prepared) as words:
        await asyncio.wait([words])
        with pytest.raises(Away):
            await recall.recall(ME, ASKED, PASSING, words, embedder().embed_query(QUERY).tolist())
    assert sent == [len(prepared)]


def _retrieval(service: Service, model: ThreadPoolExecutor) -> Retrieval:
    return Retrieval(
        service.gate,
        spaces=OneSpace(
            QuerySpace(
                recall=Recall(service.gate, filter_ids_max=100),
                vectors=QueryVectors(embedder(), model, entries=10),
            )
        ),
        source_ranks=SOURCE_RANKS,
        metrics=ApiMetrics(CollectorRegistry()),
    )
