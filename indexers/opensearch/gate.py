"""The one way to OpenSearch. Every call names a principal; the gate adds tenant and scope to whatever is asked.

Reads and writes are routed by tenant. Tombstones are rows like others here: `living()` hides them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from opensearchpy import AsyncOpenSearch

from indexers.domain.identity import Principal
from indexers.errors import RefusedRequest, Transient
from indexers.opensearch.bulk import BulkWriter
from indexers.opensearch.calls import (
    ROW_TYPES,
    BulkRejected,
    BulkRetried,
    BulkSent,
    GatedSearch,
    Observer,
    RowRef,
    RowWrite,
    SearchHit,
    SearchPage,
    StoredRow,
    StoreFact,
    WriteResult,
)
from indexers.opensearch.connect import Method, is_transient, request
from indexers.opensearch.guard import guarded_body, guarded_query
from indexers.opensearch.names import IndexNames, row_id_of, stored_id
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.opensearch.schema import Schema
from indexers.opensearch.templates import OWNER_FIELDS, VECTOR_FIELD, VectorSpace
from indexers.opensearch.visibility import Query, living, may_see, visible
from indexers.settings import OpenSearchSettings

__all__ = [
    "BulkRejected",
    "BulkRetried",
    "BulkSent",
    "Gate",
    "GatedSearch",
    "Observer",
    "RowRef",
    "RowWrite",
    "SearchHit",
    "SearchPage",
    "StoreFact",
    "StoredRow",
    "VectorSpace",
    "WriteResult",
    "living",
    "visible",
]

#: Most rows of one multi-get.
_GET_ROWS = 2_000
_SCAN_ROWS = 1_000
_PIT_KEEP_ALIVE = "2m"
_DELETE_ROWS = 5_000
#: Rounds of one delete in a row that removed nothing because other writers were faster.
_DELETE_IDLE_ROUNDS = 20


def _ignore(_fact: StoreFact) -> None:
    return


class Gate:
    """Raises Transient when the retry policy gives up, RefusedRequest for what it can't guard or the engine refuses."""

    def __init__(
        self,
        client: AsyncOpenSearch,
        names: IndexNames,
        *,
        retry: RetryPolicy,
        settings: OpenSearchSettings,
        observe: Observer = _ignore,
    ) -> None:
        self._client = client
        self._names = names
        self._retry = retry
        self._schema = Schema(client, names, settings)
        self._writer = BulkWriter(client, names, retry=retry, settings=settings, observe=observe)

    async def ensure_indices(
        self, *, dimension: int, pair_id: str, cosine_floor: float | None = None
    ) -> None:
        """Make what is missing. ConfigurationError when the stored vectors are of another space than the embedder's."""
        space = VectorSpace(pair_id=pair_id, dimension=dimension, cosine_floor=cosine_floor)
        await self._retry.call(lambda: self._schema.ensure(space))

    async def drop_indices(self) -> None:
        """Delete every index of this prefix with all rows of all tenants. For rebuild and tests."""
        await self._retry.call(self._schema.drop)

    async def vector_space(self) -> VectorSpace:
        return await self._retry.call(self._schema.recorded_space)

    async def close(self) -> None:
        await self._client.close()

    async def ping(self) -> None:
        """One attempt whatever the policy, for readiness: raises Transient when the store is away."""
        await request(self._client, "GET", "/_cluster/health")

    async def refresh(self, *indexes: Index) -> None:
        """Make what was written findable; without arguments in every index."""
        aliases = [self._names.alias_of(i, s) for i in indexes or Index for s in self._names.suffixes]
        await self._call("POST", f"/{','.join(aliases)}/_refresh")

    async def get_many(
        self, index: Index, refs: Sequence[RowRef], *, fields: Sequence[str] | None = None
    ) -> list[StoredRow | None]:
        """The rows as last written, refreshed or not, in the order asked, in one round trip.

        None: the row doesn't exist, or its principal may not see it. `fields` None: all but the vector.
        """
        found: list[StoredRow | None] = []
        for start in range(0, len(refs), _GET_ROWS):
            found += await self._get_some(index, refs[start : start + _GET_ROWS], fields)
        return found

    async def write(self, writes: Sequence[RowWrite]) -> list[WriteResult]:
        """One result per write, in order. Transient: some may have been applied; send all of them again.

        A row that the principal may not see is never replaced or deleted; the answer is that for a missing row.
        """
        for write in writes:
            _check_ownership(write)
        foreign = await self._foreign(writes)
        sent = await self._writer.write([(n, w) for n, w in enumerate(writes) if n not in foreign])
        return [_untouched(write) if n in foreign else sent[n] for n, write in enumerate(writes)]

    async def search_many(self, searches: Sequence[GatedSearch]) -> list[SearchPage]:
        """All in one request. A shard that fails or times out fails the call: half an answer is none."""
        if not searches:
            return []
        lines: list[bytes] = []
        for search in searches:
            tenant_id = search.principal.tenant_id
            header = {"index": self._names.alias(search.index, tenant_id), "routing": tenant_id}
            lines.append(msgspec.json.encode(header | {"allow_partial_search_results": False}))
            lines.append(msgspec.json.encode(guarded_body(search.body, search.principal)))
        body = b"\n".join(lines) + b"\n"

        async def search_once() -> list[SearchPage]:
            answer = await request(self._client, "POST", "/_msearch", body=body)
            return [_page(response) for response in answer["responses"]]

        return await self._retry.call(search_once)

    async def count(self, principal: Principal, index: Index, query: Query) -> int:
        body = {"query": guarded_query(query, principal), "size": 0, "track_total_hits": True}
        answer = await self._search(
            f"/{self._names.alias(index, principal.tenant_id)}/_search", body, principal
        )
        return int(answer["hits"]["total"]["value"])

    async def delete_matching(self, principal: Principal, index: Index, query: Query) -> int:
        """Delete all rows that match, also those written a moment ago; the number deleted."""
        body = {"query": guarded_query(query, principal), "max_docs": _DELETE_ROWS}
        deleted: int = 0
        idle = 0
        while True:
            await self.refresh(index)
            answer = await self._delete_some(principal, index, body)
            deleted += answer["deleted"]
            if answer["version_conflicts"] == 0 and answer["total"] < _DELETE_ROWS:
                return deleted
            idle = 0 if answer["deleted"] else idle + 1
            if idle:
                fault = Transient(f"{answer['version_conflicts']} rows changed while they were to be deleted")
                if idle >= _DELETE_IDLE_ROUNDS:
                    raise fault
                await self._retry.wait(idle, fault)

    async def scan(
        self,
        principal: Principal,
        index: Index,
        query: Query,
        *,
        fields: Sequence[str] | None = None,
    ) -> AsyncIterator[StoredRow]:
        """Every matching row of one moment, in no particular order; rows not yet refreshed aren't in it.

        Read it to the end or close it (`contextlib.aclosing`): it holds a point in time in the engine.
        """
        tenant_id = principal.tenant_id
        opened = await self._call(
            "POST",
            f"/{self._names.alias(index, tenant_id)}/_search/point_in_time",
            params={"keep_alive": _PIT_KEEP_ALIVE, "routing": tenant_id},
        )
        try:
            async for row in self._pages(opened["pit_id"], principal, query, fields):
                yield row
        finally:
            await self._close_point_in_time(opened["pit_id"])

    async def _pages(
        self, pit_id: str, principal: Principal, query: Query, fields: Sequence[str] | None
    ) -> AsyncIterator[StoredRow]:
        body: dict[str, Any] = {
            "query": guarded_query(query, principal),
            "size": _SCAN_ROWS,
            "sort": [{"_shard_doc": "asc"}],
            "pit": {"id": pit_id, "keep_alive": _PIT_KEEP_ALIVE},
            "track_total_hits": False,
            "version": True,
            "seq_no_primary_term": True,
            "_source": {"excludes": [VECTOR_FIELD]} if fields is None else list(fields),
        }
        while True:
            # Routing was given when the point in time was opened.
            answer = await self._search("/_search", body, None)
            hits = answer["hits"]["hits"]
            for hit in hits:
                yield _stored(hit)
            if len(hits) < _SCAN_ROWS:
                return
            body["search_after"] = hits[-1]["sort"]

    async def _close_point_in_time(self, pit_id: str) -> None:
        try:
            await request(self._client, "DELETE", "/_search/point_in_time", body={"pit_id": [pit_id]})
        except (Transient, RefusedRequest):
            # It ends by itself after its keep-alive; the rows have been read.
            return

    async def _get_some(
        self, index: Index, refs: Sequence[RowRef], fields: Sequence[str] | None
    ) -> list[StoredRow | None]:
        wanted = {"excludes": [VECTOR_FIELD]} if fields is None else sorted({*fields, *OWNER_FIELDS})
        body = {
            "docs": [
                {
                    "_index": self._names.alias(index, ref.principal.tenant_id),
                    "_id": stored_id(ref.principal.tenant_id, ref.row_id),
                    "routing": ref.principal.tenant_id,
                    "_source": wanted,
                }
                for ref in refs
            ]
        }

        async def get_once() -> list[dict[str, Any]]:
            answer = await request(self._client, "POST", "/_mget", body=msgspec.json.encode(body))
            for doc in answer["docs"]:
                if error := doc.get("error"):
                    _raise_item_error(500, error)
            docs: list[dict[str, Any]] = answer["docs"]
            return docs

        docs = await self._retry.call(get_once)
        return [_seen(ref, doc, fields) for ref, doc in zip(refs, docs, strict=True)]

    async def _foreign(self, writes: Sequence[RowWrite]) -> set[int]:
        """Positions of writes whose row is there already and belongs to someone the principal may not see."""
        foreign: set[int] = set()
        for index in Index:
            asked = [
                (n, w)
                for n, w in enumerate(writes)
                if w.index is index and w.action != "create" and not w.principal.sees_whole_tenant
            ]
            refs = [
                RowRef(principal=Principal.pipeline(w.principal.tenant_id), row_id=w.row_id) for _, w in asked
            ]
            stored = await self.get_many(index, refs, fields=OWNER_FIELDS) if refs else []
            for (position, write), row in zip(asked, stored, strict=True):
                if row is not None and not may_see(write.principal, row.source):
                    foreign.add(position)
        return foreign

    async def _delete_some(self, principal: Principal, index: Index, body: dict[str, Any]) -> dict[str, Any]:
        path = f"/{self._names.alias(index, principal.tenant_id)}/_delete_by_query"
        params = {"routing": principal.tenant_id, "conflicts": "proceed", "refresh": "true"}

        async def delete_once() -> dict[str, Any]:
            answer: dict[str, Any] = await request(
                self._client, "POST", path, params=params, body=body, timeout=120
            )
            for failure in answer["failures"]:
                _raise_item_error(failure.get("status", 500), failure.get("cause") or failure.get("reason"))
            if answer["timed_out"]:
                msg = "OpenSearch ran out of time while deleting"
                raise Transient(msg)
            return answer

        return await self._retry.call(delete_once)

    async def _search(self, path: str, body: dict[str, Any], principal: Principal | None) -> dict[str, Any]:
        params = {"allow_partial_search_results": "false"}
        if principal is not None:
            params["routing"] = principal.tenant_id

        async def search_once() -> dict[str, Any]:
            answer: dict[str, Any] = await request(self._client, "POST", path, params=params, body=body)
            _require_whole(answer)
            return answer

        return await self._retry.call(search_once)

    async def _call(
        self, method: Any, path: str, *, params: dict[str, str] | None = None, body: Any = None
    ) -> Any:
        return await self._retry.call(lambda: request(self._client, method, path, params=params, body=body))


def _check_ownership(write: RowWrite) -> None:
    """A mismatch is a bug of the caller, never data: it must not become a dead letter."""
    row = write.row
    if row is None:
        return
    if type(row) is not ROW_TYPES[write.index]:
        msg = f"{type(row).__name__} is no row of {write.index}"
        raise ValueError(msg)
    owner = {name: getattr(row, name) for name in OWNER_FIELDS}
    if not may_see(write.principal, owner):
        msg = f"row {write.row_id} belongs to {owner}, which {write.principal} may not write"
        raise ValueError(msg)


def _untouched(write: RowWrite) -> WriteResult:
    match write.action:
        case "delete":
            return WriteResult(row_id=write.row_id, status="applied")
        case "replace_if":
            return WriteResult(row_id=write.row_id, status="conflict", reason="the row is not there")
        case _:
            return WriteResult(row_id=write.row_id, status="rejected", reason="the id is another owner's")


def _seen(ref: RowRef, doc: dict[str, Any], fields: Sequence[str] | None) -> StoredRow | None:
    if not doc["found"] or not may_see(ref.principal, doc["_source"]):
        return None
    if fields is not None:
        doc["_source"] = {name: value for name, value in doc["_source"].items() if name in fields}
    return _stored(doc)


def _stored(hit: dict[str, Any]) -> StoredRow:
    return StoredRow(
        row_id=row_id_of(hit["_id"]),
        source=hit.get("_source", {}),
        seq_no=hit["_seq_no"],
        primary_term=hit["_primary_term"],
        version=hit["_version"],
    )


def _page(response: dict[str, Any]) -> SearchPage:
    if error := response.get("error"):
        _raise_item_error(response.get("status", 500), error)
    _require_whole(response)
    return SearchPage(
        hits=[
            SearchHit(
                row_id=row_id_of(hit["_id"]),
                score=hit["_score"],
                source=hit.get("_source", {}),
                seq_no=hit["_seq_no"],
                primary_term=hit["_primary_term"],
                matched_queries=tuple(hit.get("matched_queries", ())),
                sort=tuple(hit.get("sort", ())),
                explanation=hit.get("_explanation"),
            )
            for hit in response["hits"]["hits"]
        ],
        total=response["hits"].get("total", {}).get("value", 0),
        aggregations=response.get("aggregations", {}),
    )


def _require_whole(answer: dict[str, Any]) -> None:
    shards = answer["_shards"]
    if shards["failed"] or answer.get("timed_out"):
        msg = f"{shards['failed']} of {shards['total']} shards failed or ran out of time"
        raise Transient(msg)


def _raise_item_error(status: int, error: Any) -> None:
    cause: dict[str, Any] = error if isinstance(error, dict) else {"type": "error", "reason": str(error)}
    roots = cause.get("root_cause") or [cause]
    kind, reason = str(roots[0].get("type", "error")), str(roots[0].get("reason", ""))
    if is_transient(status, kind):
        msg = f"OpenSearch answered {status}: {kind}: {reason}"
        raise Transient(msg)
    raise RefusedRequest(status, kind, reason)
