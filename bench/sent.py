"""What a search sends to the engine, recorded as it goes out, and sent once more.

The recording service is put together of the parts that `hopline api` uses, in the process of the bench: its cache of
query vectors is its own. Bodies are kept as bytes, after all that the product does to them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from opensearchpy import AsyncOpenSearch
from prometheus_client import CollectorRegistry

from indexers.domain.identity import Principal
from indexers.opensearch.connect import Method, connect, decoded, request_bytes
from indexers.opensearch.gate import Gate
from indexers.opensearch.names import IndexNames
from indexers.opensearch.retry import RetryPolicy
from indexers.ports import Embedder
from indexers.settings import IndexingSettings, OpenSearchSettings, VaultRoot
from indexers.vault.roots import files_of
from search_api.metrics import ApiMetrics
from search_api.reading import VaultLibrary
from search_api.requests import SearchRequest
from search_api.retrieval.pipeline import Retrieval
from search_api.retrieval.query_vectors import QueryVectors
from search_api.retrieval.recall import Recall
from search_api.retrieval.service import SearchService
from search_api.retrieval.spaces import OneSpace, QuerySpace
from search_api.settings import SearchSettings
from tests.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request; none that a search makes has parameters."""

    method: Method
    path: str
    body: bytes

    async def again(self, client: AsyncOpenSearch) -> Any:
        """By the product's client, the answer read whole and decoded once."""
        answer = await request_bytes(client, self.method, self.path, body=self.body)
        return decoded(msgspec.json.decode, answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What one search sent, in order, and the documents that it answered."""

    sent: tuple[Sent, ...]
    #: Waits for the engine, as its trace counts them.
    round_trips: int
    doc_ids: tuple[str, ...]

    @property
    def joined(self) -> tuple[Sent, ...]:
        """As few requests as it could do with: what the recall sends beside the model and behind it, as one."""
        words, near, *rest = self.sent
        assert words.path == near.path == "/_msearch"
        return (Sent(method=words.method, path=words.path, body=words.body + near.body), *rest)


@dataclass(kw_only=True)
class Recorder:
    service: SearchService
    principal: Principal
    sent: list[Sent] = field(default_factory=list)

    async def record(self, request: SearchRequest) -> Recorded:
        self.sent.clear()
        answer = await self.service.search(self.principal, request.model_copy(update={"explain": True}))
        assert answer.trace is not None
        return Recorded(
            sent=tuple(self.sent),
            round_trips=answer.trace.round_trips,
            doc_ids=tuple(hit.doc_id for hit in answer.hits),
        )


@asynccontextmanager
async def recorder(
    pipeline: Pipeline, principal: Principal, embedder: Embedder
) -> AsyncIterator[tuple[Recorder, AsyncOpenSearch]]:
    """And the client that it sends by. The settings are the defaults, as the service's are (`Pipeline`)."""
    engine, search = OpenSearchSettings(), SearchSettings()
    client = connect(engine, pipeline.opensearch_url)
    gate = Gate(client, IndexNames(prefix=pipeline.prefix), retry=RetryPolicy.once(), settings=engine)
    metrics = ApiMetrics(CollectorRegistry())
    with ThreadPoolExecutor(2) as model, ThreadPoolExecutor(8) as files:
        retrieval = Retrieval(
            gate,
            spaces=OneSpace(
                QuerySpace(
                    recall=Recall(gate, filter_ids_max=search.filter_ids_max),
                    vectors=QueryVectors(embedder, model, entries=0),
                )
            ),
            source_ranks=search.source_ranks,
            metrics=metrics,
        )
        roots = [VaultRoot.model_validate(vault) for vault in pipeline.vaults]
        service = SearchService(
            retrieval=retrieval,
            library=VaultLibrary(files_of(roots), files),
            settings=search,
            text_max_bytes=IndexingSettings().document_max_bytes,
            metrics=metrics,
        )
        found = Recorder(service=service, principal=principal)
        _listen(client, found.sent)
        try:
            yield found, client
        finally:
            await gate.close()


def _listen(client: AsyncOpenSearch, sent: list[Sent]) -> None:
    """Every request of the client from now on. What is kept costs a replay a list's `append`."""
    perform = client.transport.perform_request

    async def keeping(method: Method, path: str, **more: Any) -> Any:
        if more.get("params"):
            msg = f"{path} was asked with parameters, which a replay leaves out"
            raise RuntimeError(msg)
        sent.append(Sent(method=method, path=path, body=more["body"]))
        return await perform(method, path, **more)

    client.transport.perform_request = keeping  # type: ignore[assignment, method-assign]
