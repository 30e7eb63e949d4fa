"""The one way to OpenSearch. Every call names a principal; the gate adds tenant and scope to what is asked.

Reads and writes are routed by tenant. Tombstones are rows like others here: `living()` hides them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import replace
from typing import Any

from opensearchpy import AsyncOpenSearch

from indexers.domain.identity import Principal
from indexers.errors import Transient
from indexers.opensearch.answers import raise_error
from indexers.opensearch.bulk import BulkWriter
from indexers.opensearch.calls import (
    BulkRejected,
    BulkRetried,
    BulkSent,
    GatedSearch,
    Observer,
    PreparedSearch,
    RowAsked,
    RowRef,
    RowWrite,
    SearchHit,
    SearchPage,
    StoredRow,
    StoreFact,
    WriteResult,
)
from indexers.opensearch.connect import request
from indexers.opensearch.generations import Cut, Generations, MadeBy
from indexers.opensearch.guard import guarded_query
from indexers.opensearch.names import EVERY, Chunks, IndexNames
from indexers.opensearch.ownership import check_ownership, untouched
from indexers.opensearch.reads import RowReader
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.opensearch.schema import Schema
from indexers.opensearch.templates import OWNER_FIELDS, VectorSpace
from indexers.opensearch.visibility import Query, living, may_see, visible
from indexers.settings import OpenSearchSettings

__all__ = [
    "BulkRejected",
    "BulkRetried",
    "BulkSent",
    "Gate",
    "GatedSearch",
    "Observer",
    "PreparedSearch",
    "RowAsked",
    "RowRef",
    "RowWrite",
    "SearchHit",
    "SearchPage",
    "StoreFact",
    "StoredRow",
    "VectorSpace",
    "WriteResult",
    "ignore_fact",
    "living",
    "visible",
]

#: Rows of one request, so that each ends well within its timeout.
_DELETE_ROWS = 5_000
#: For requests that wait for the disk.
_PATIENCE_SECONDS = 60.0
#: Rounds of one delete in a row that removed nothing because other writers were faster.
_DELETE_IDLE_ROUNDS = 20


def ignore_fact(_fact: StoreFact) -> None:
    """For who counts nothing."""


class Gate:
    """Raises Transient when the retry policy gives up, RefusedRequest for what is never taken."""

    def __init__(
        self,
        client: AsyncOpenSearch,
        names: IndexNames,
        *,
        retry: RetryPolicy,
        settings: OpenSearchSettings,
        observe: Observer = ignore_fact,
    ) -> None:
        self._client = client
        self._names = names
        self._retry = retry
        self._settings = settings
        self._observe = observe
        self._schema = Schema(client, names, settings)
        self._reader = RowReader(client, names, retry)
        self._writer = BulkWriter(client, names, retry=retry, settings=settings, observe=observe)

    async def ensure_indices(
        self, *, dimension: int, pair_id: str, cosine_floor: float | None = None
    ) -> None:
        """Make what is missing. ConfigurationError when the stored vectors are of another space."""
        space = VectorSpace(pair_id=pair_id, dimension=dimension, cosine_floor=cosine_floor)
        await self._retry.call(lambda: self._schema.ensure(space))

    async def drop_indices(self, indexes: Sequence[Index] = tuple(Index)) -> None:
        """Delete these indices of this prefix with all rows of all tenants. A rebuild drops `rows.REBUILT`."""
        await self._retry.call(lambda: self._schema.drop(indexes))

    async def vector_space(self) -> VectorSpace:
        """Of the vectors that are searched. Transient while there is no index yet."""
        live = (await self.generations()).live
        if live is None:
            msg = "the indices are not there yet"
            raise Transient(msg)
        return live.space

    def of_chunks(self, chunks: Chunks) -> Gate:
        """The same gate, but that by chunks it means those of one generation; it is closed with this one.

        None: those that are searched. `EVERY`: all, for searches, counts and `delete_matching`, never for rows by id.
        """
        names = replace(self._names, chunks=chunks)
        return Gate(self._client, names, retry=self._retry, settings=self._settings, observe=self._observe)

    @property
    def everywhere(self) -> Gate:
        """What is counted or deleted with it is so in a generation that isn't searched, too."""
        return self.of_chunks(EVERY)

    async def generations(self) -> Generations:
        """Of chunks, as the cluster has them now."""
        return await self._retry.call(self._schema.generations)

    async def make_generation(
        self, number: int, space: VectorSpace, made_by: MadeBy, counts: Iterable[Cut]
    ) -> None:
        """An empty one, which isn't searched; the others' state stays."""
        cuts = tuple(counts)
        await self._retry.call(lambda: self._schema.make_generation(number, space, made_by, cuts))

    async def describe_generation(self, number: int, **changes: Any) -> None:
        """What a generation says of itself: plain JSON values of `made_by`, `counts`, `fed`."""
        await self._retry.call(lambda: self._schema.describe_generation(number, **changes))

    async def serve_generation(self, number: int) -> None:
        """It is searched from here on, for all tenants at once."""
        await self._retry.call(lambda: self._schema.serve_generation(number))

    async def drop_generation(self, number: int) -> None:
        """With all its rows. ConfigurationError for the one that is searched."""
        await self._retry.call(lambda: self._schema.drop_generation(number))

    async def close(self) -> None:
        await self._client.close()

    async def refresh(self, *indexes: Index) -> None:
        """Make what was written findable; without arguments in every index."""
        aliases = [self._names.meant(i, s) for i in indexes or Index for s in self._names.suffixes]
        path = f"/{','.join(aliases)}/_refresh"
        await self._retry.call(lambda: request(self._client, "POST", path, timeout=_PATIENCE_SECONDS))

    async def get_many(
        self, index: Index, refs: Sequence[RowRef], *, fields: Sequence[str] | None = None
    ) -> list[StoredRow | None]:
        """The rows as last written, refreshed or not, in the order asked, in one round trip.

        None: the row doesn't exist, or its principal may not see it. `fields` None: all but the vector.
        """
        return await self._reader.get_many(index, refs, fields=fields)

    async def get_rows(self, asked: Sequence[RowAsked]) -> list[StoredRow | None]:
        """As `get_many`, of several indices in one round trip."""
        return await self._reader.get_rows(asked)

    async def write(self, writes: Sequence[RowWrite]) -> list[WriteResult]:
        """One result per write, in order. Transient: some may have been applied; send all of them again.

        A row that the principal may not see is never replaced or deleted, and `delete`, `replace_if` and `delete_if`
        answer as for a missing row.
        """
        for write in writes:
            check_ownership(write)
        foreign = await self._foreign(writes)
        sent = await self._writer.write([(n, w) for n, w in enumerate(writes) if n not in foreign])
        return [untouched(write) if n in foreign else sent[n] for n, write in enumerate(writes)]

    def prepare(self, search: GatedSearch) -> PreparedSearch:
        """For `search_many`: what can be done of a search while another part of the request is waited for."""
        return self._reader.prepare(search)

    async def search_many(self, searches: Sequence[GatedSearch | PreparedSearch]) -> list[SearchPage]:
        """All in one request. A shard that fails or times out fails the call: half an answer is none."""
        return await self._reader.search_many(searches)

    async def count(self, principal: Principal, index: Index, query: Query) -> int:
        return await self._reader.count(principal, index, query)

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

    def scan(
        self,
        principal: Principal,
        index: Index,
        query: Query,
        *,
        fields: Sequence[str] | None = None,
    ) -> AsyncGenerator[StoredRow, None]:
        """Every matching row of one moment, in no particular order; rows not yet refreshed aren't in it.

        Read it to the end or close it (`contextlib.aclosing`): it holds a point in time in the engine.
        """
        return self._reader.scan(principal, index, query, fields=fields)

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
                self._client, "POST", path, params=params, body=body, timeout=_PATIENCE_SECONDS
            )
            for failure in answer["failures"]:
                raise_error(failure.get("status", 500), failure.get("cause") or failure.get("reason"))
            if answer["timed_out"]:
                msg = "OpenSearch ran out of time while deleting"
                raise Transient(msg)
            return answer

        return await self._retry.call(delete_once)
