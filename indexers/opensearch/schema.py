"""Template, indices and aliases: made once, by whichever process comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

from opensearchpy import AsyncOpenSearch

from indexers.errors import ConfigurationError, RefusedRequest, Transient
from indexers.opensearch.connect import Method, request
from indexers.opensearch.names import MAPPING_VERSION, IndexNames
from indexers.opensearch.rows import Index
from indexers.opensearch.templates import VectorSpace, index_body, template_body
from indexers.settings import OpenSearchSettings

_REBUILD = "stop the agents and run `hopline rebuild`, which fills new indices from the vault"
_PATIENCE_SECONDS = 60.0


class Schema:
    """Each call is one attempt: repeat it on Transient. All are idempotent, also in two processes at once."""

    def __init__(self, client: AsyncOpenSearch, names: IndexNames, settings: OpenSearchSettings) -> None:
        self._client = client
        self._names = names
        self._settings = settings

    async def ensure(self, space: VectorSpace) -> None:
        """All indices at once: the node makes one after the other, but starts their shards beside that."""
        await self._put_template()
        await _all(self._ensure_index(i, suffix, space) for i in Index for suffix in self._names.suffixes)
        await self._require_allocated()

    async def drop(self, dropped: Sequence[Index]) -> None:
        """The template last, and only with all indices: it keeps a mistaken auto-created index harmless."""
        indices = [self._names.index_of(i, s) for i in dropped for s in self._names.suffixes]
        await self._request("DELETE", f"/{','.join(indices)}", params={"ignore_unavailable": "true"})
        if set(dropped) == set(Index):
            await self._drop_template()

    async def recorded_space(self, suffix: str | None = None) -> VectorSpace:
        """The vector space that the stored vectors belong to."""
        found = await self._recorded(self._names.index_of(Index.CHUNKS, suffix))
        return VectorSpace(
            pair_id=found.get("pair_id", ""),
            dimension=found.get("dimension", 0),
            cosine_floor=found.get("cosine_floor"),
        )

    async def _put_template(self) -> None:
        body = template_body(self._names.template_patterns, self._settings)
        await self._request("PUT", f"/_index_template/{self._names.template}", body=body)

    async def _drop_template(self) -> None:
        try:
            await self._request("DELETE", f"/_index_template/{self._names.template}")
        except RefusedRequest as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise

    async def _ensure_index(self, index: Index, suffix: str | None, space: VectorSpace) -> None:
        name, alias = self._names.index_of(index, suffix), self._names.alias_of(index, suffix)
        # Whole body: the template holds what all have in common, and only for indices made by others.
        body = index_body(index, self._settings, space) | {"aliases": {alias: {"is_write_index": True}}}
        try:
            await self._request("PUT", f"/{name}", body=body)
        except RefusedRequest as refused:
            if refused.error_type == "invalid_alias_name_exception":
                msg = f"an index is named {alias}, where an alias is due: delete it, or set another prefix"
                raise ConfigurationError(msg) from refused
            if refused.error_type != "resource_already_exists_exception":
                raise
            await self._check_existing(index, name, alias, space)

    async def _check_existing(self, index: Index, name: str, alias: str, space: VectorSpace) -> None:
        recorded = await self._recorded(name)
        if recorded.get("schema_version") != MAPPING_VERSION:
            msg = f"index {name} was made by another version of Hopline: {_REBUILD}"
            raise ConfigurationError(msg)
        stored = (recorded.get("pair_id"), recorded.get("dimension"))
        if index is Index.CHUNKS and stored != (space.pair_id, space.dimension):
            msg = (
                f"index {name} holds vectors of {stored[0]} ({stored[1]} dimensions), but the configured"
                f" embedder makes those of {space.pair_id} ({space.dimension}), and the two can't be"
                f" compared: set HOPLINE_EMBEDDER__MODEL back, or {_REBUILD}"
            )
            raise ConfigurationError(msg)
        actions = [{"add": {"index": name, "alias": alias, "is_write_index": True}}]
        await self._request("POST", "/_aliases", body={"actions": actions})

    async def _recorded(self, name: str) -> dict[str, Any]:
        answer = await self._request("GET", f"/{name}/_mapping")
        recorded: dict[str, Any] = answer[name]["mappings"].get("_meta", {})
        return recorded

    async def _request(self, method: Method, path: str, **options: Any) -> Any:
        """Making and dropping indices waits for the cluster's state: a busy node takes its time."""
        return await request(self._client, method, path, timeout=_PATIENCE_SECONDS, **options)

    async def _require_allocated(self) -> None:
        aliases = [self._names.alias_of(i, s) for i in Index for s in self._names.suffixes]
        health = await self._request("GET", f"/_cluster/health/{','.join(aliases)}")
        if health["status"] == "red":
            msg = "OpenSearch has not allocated all primary shards yet"
            raise Transient(msg)


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Every call comes to its end; then the first fault in their order is raised."""
    for fault in await asyncio.gather(*calls, return_exceptions=True):
        if fault is not None:
            raise fault
