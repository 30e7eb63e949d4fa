"""Reads: by id in one realtime round trip, by query, and exhaustively over a point in time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
from opensearchpy import AsyncOpenSearch

from indexers.domain.identity import Principal
from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.answers import Shards, raise_error, require_whole, search_pages, seen_row, stored_row
from indexers.opensearch.calls import GatedSearch, PreparedSearch, RowAsked, RowRef, SearchPage, StoredRow
from indexers.opensearch.connect import request, request_bytes
from indexers.opensearch.guard import guarded_body, guarded_query
from indexers.opensearch.names import IndexNames, stored_id
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.opensearch.templates import OWNER_FIELDS, VECTOR_FIELDS
from indexers.opensearch.visibility import Query

#: Most rows of one multi-get.
_GET_ROWS = 2_000
_SCAN_ROWS = 1_000
_PIT_KEEP_ALIVE = "2m"
#: To leave fields out is to parse and write a row anew, 20 to 50 microseconds: dearer than to send a small row whole.
_LARGE = frozenset({Index.CHUNKS, Index.LINKS, Index.MENTIONS})
#: What `_source` takes in a request.
Source = bool | list[str] | dict[str, list[str]]


class RowReader:
    """See `Gate`, whose reading half this is."""

    def __init__(self, client: AsyncOpenSearch, names: IndexNames, retry: RetryPolicy) -> None:
        self._client = client
        self._names = names
        self._retry = retry

    async def get_many(
        self, index: Index, refs: Sequence[RowRef], *, fields: Sequence[str] | None = None
    ) -> list[StoredRow | None]:
        return await self.get_rows([RowAsked(index=index, ref=ref, fields=fields) for ref in refs])

    async def get_rows(self, asked: Sequence[RowAsked]) -> list[StoredRow | None]:
        found: list[StoredRow | None] = []
        for start in range(0, len(asked), _GET_ROWS):
            found += await self._get_some(asked[start : start + _GET_ROWS])
        return found

    async def _get_some(self, asked: Sequence[RowAsked]) -> list[StoredRow | None]:
        body = {
            "docs": [
                {
                    "_index": self._names.alias(one.index, one.ref.principal.tenant_id),
                    "_id": stored_id(one.ref.principal.tenant_id, one.ref.row_id),
                    "routing": one.ref.principal.tenant_id,
                    "_source": _wanted(one.index, one.fields),
                }
                for one in asked
            ]
        }

        async def get_once() -> list[dict[str, Any]]:
            answer = await request(self._client, "POST", "/_mget", body=msgspec.json.encode(body))
            for doc in answer["docs"]:
                if error := doc.get("error"):
                    raise_error(500, error)
            docs: list[dict[str, Any]] = answer["docs"]
            return docs

        docs = await self._retry.call(get_once)
        return [seen_row(one.ref, doc, one.fields) for one, doc in zip(asked, docs, strict=True)]

    def prepare(self, search: GatedSearch) -> PreparedSearch:
        tenant_id = search.principal.tenant_id
        header = {"index": self._names.alias(search.index, tenant_id), "routing": tenant_id}
        first = msgspec.json.encode(header | {"allow_partial_search_results": False})
        second = msgspec.json.encode(guarded_body(search.body, search.principal))
        return PreparedSearch(lines=b"%b\n%b\n" % (first, second), hit=search.hit)

    async def search_many(self, searches: Sequence[GatedSearch | PreparedSearch]) -> list[SearchPage]:
        if not searches:
            return []
        prepared = [s if isinstance(s, PreparedSearch) else self.prepare(s) for s in searches]
        body = b"".join([search.lines for search in prepared])

        async def search_once() -> list[SearchPage]:
            return search_pages(await request_bytes(self._client, "POST", "/_msearch", body=body), prepared)

        return await self._retry.call(search_once)

    async def count(self, principal: Principal, index: Index, query: Query) -> int:
        body = {"query": guarded_query(query, principal), "size": 0, "track_total_hits": True}
        answer = await self._search(
            f"/{self._names.alias(index, principal.tenant_id)}/_search", body, principal
        )
        return int(answer["hits"]["total"]["value"])

    async def scan(
        self,
        principal: Principal,
        index: Index,
        query: Query,
        *,
        fields: Sequence[str] | None = None,
    ) -> AsyncGenerator[StoredRow, None]:
        tenant_id = principal.tenant_id
        path = f"/{self._names.alias(index, tenant_id)}/_search/point_in_time"
        params = {"keep_alive": _PIT_KEEP_ALIVE, "routing": tenant_id}
        opened = await self._retry.call(lambda: request(self._client, "POST", path, params=params))
        try:
            source = _all_fields(index) if fields is None else list(fields)
            async for row in self._pages(opened["pit_id"], principal, query, source):
                yield row
        finally:
            await self._close_point_in_time(opened["pit_id"])

    async def _pages(
        self, pit_id: str, principal: Principal, query: Query, source: Source
    ) -> AsyncGenerator[StoredRow, None]:
        body: dict[str, Any] = {
            "query": guarded_query(query, principal),
            "size": _SCAN_ROWS,
            "sort": [{"_shard_doc": "asc"}],
            "pit": {"id": pit_id, "keep_alive": _PIT_KEEP_ALIVE},
            "track_total_hits": False,
            "version": True,
            "seq_no_primary_term": True,
            "_source": source,
        }
        while True:
            # Routing was given when the point in time was opened.
            answer = await self._search("/_search", body, None)
            hits = answer["hits"]["hits"]
            for hit in hits:
                yield stored_row(hit)
            if len(hits) < _SCAN_ROWS:
                return
            body["search_after"] = hits[-1]["sort"]

    async def _close_point_in_time(self, pit_id: str) -> None:
        try:
            await request(self._client, "DELETE", "/_search/point_in_time", body={"pit_id": [pit_id]})
        except (Transient, RefusedRequest):
            # It ends by itself after its keep-alive; the rows have been read.
            return

    async def _search(self, path: str, body: dict[str, Any], principal: Principal | None) -> dict[str, Any]:
        params = {"allow_partial_search_results": "false"}
        if principal is not None:
            params["routing"] = principal.tenant_id

        async def search_once() -> dict[str, Any]:
            answer: dict[str, Any] = await request(self._client, "POST", path, params=params, body=body)
            shards = answer["_shards"]
            require_whole(Shards(shards["total"], shards["failed"]), timed_out=answer.get("timed_out", False))
            return answer

        return await self._retry.call(search_once)


def _wanted(index: Index, fields: Sequence[str] | None) -> Source:
    whole = fields is None or index not in _LARGE
    return _all_fields(index) if whole else sorted({*(fields or ()), *OWNER_FIELDS})


def _all_fields(index: Index) -> Source:
    """All but the vector."""
    return {"excludes": list(VECTOR_FIELDS)} if index is Index.CHUNKS else True
