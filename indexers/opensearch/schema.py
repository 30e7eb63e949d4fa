"""Template, indices and aliases: made once, by whichever process comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from opensearchpy import AsyncOpenSearch

from indexers.errors import ConfigurationError, RefusedRequest, Transient
from indexers.opensearch.connect import Method, request
from indexers.opensearch.generations import Cut, Generations, MadeBy, generations_of, require_space
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
        known = await self.generations()
        plain = [i for i in Index if i is not Index.CHUNKS]
        suffixes = self._names.suffixes
        await _all(
            [
                *(self._ensure_index(i, suffix, space) for i in plain for suffix in suffixes),
                *(self._ensure_chunks(suffix, space, known) for suffix in suffixes),
            ]
        )
        await self._require_allocated()

    async def drop(self, dropped: Sequence[Index]) -> None:
        """The template last, and only with all indices: it keeps a mistaken auto-created index harmless."""
        indices = [self._names.index_of(i, s) for i in dropped for s in self._names.suffixes]
        if Index.CHUNKS in dropped:
            known = await self.generations()
            indices += [name for one in known.all for name in one.indices.values()]
        path = f"/{','.join(dict.fromkeys(indices))}"
        await self._request("DELETE", path, params={"ignore_unavailable": "true"})
        if set(dropped) == set(Index):
            await self._drop_template()

    async def generations(self) -> Generations:
        """Of the chunks index; none where there is no index yet."""
        firsts = [self._names.generation_index(1, suffix) for suffix in self._names.suffixes]
        every = ",".join(f"{first},{first}@*" for first in firsts)
        params = {"ignore_unavailable": "true", "filter_path": "*.aliases,*.mappings._meta"}
        return generations_of(await self._request("GET", f"/{every}", params=params), self._names)

    async def make_generation(
        self, number: int, space: VectorSpace, made_by: MadeBy, counts: Iterable[Cut]
    ) -> None:
        """Empty, fed, and not searched. One that is there stays as it is."""
        more = {"made_by": msgspec.to_builtins(made_by), "counts": sorted(map(list, counts)), "fed": True}
        for suffix in self._names.suffixes:
            alias = self._names.generation_alias(number, suffix)
            body = index_body(Index.CHUNKS, self._settings, space, more)
            body |= {"aliases": {alias: {"is_write_index": True}}}
            try:
                await self._request("PUT", f"/{self._names.generation_index(number, suffix)}", body=body)
            except RefusedRequest as refused:
                if refused.error_type != "resource_already_exists_exception":
                    raise

    async def describe_generation(self, number: int, **changes: Any) -> None:
        """Fields of its `_meta` set to something else; all others stay."""
        for suffix in self._names.suffixes:
            name = self._names.generation_index(number, suffix)
            body = {"_meta": await self._recorded(name) | changes}
            await self._request("PUT", f"/{name}/_mapping", body=body)

    async def serve_generation(self, number: int) -> None:
        """The plain aliases of all suffixes onto it, in one step."""
        known, actions = await self.generations(), []
        for suffix in self._names.suffixes:
            alias = self._names.alias_of(Index.CHUNKS, suffix)
            others = [
                one.indices[suffix] for one in known.all if one.number != number and suffix in one.indices
            ]
            actions += [{"remove": {"index": name, "alias": alias, "must_exist": False}} for name in others]
            name = self._names.generation_index(number, suffix)
            actions.append({"add": {"index": name, "alias": alias, "is_write_index": True}})
        await self._request("POST", "/_aliases", body={"actions": actions})

    async def drop_generation(self, number: int) -> None:
        """Raises ConfigurationError for the one that is searched."""
        known = await self.generations()
        one = known.numbered(number)
        if one is None:
            return
        if one.live:
            msg = f"generation {number} of the chunks is the one that is searched: it can't be dropped"
            raise ConfigurationError(msg)
        path = f"/{','.join(one.indices.values())}"
        await self._request("DELETE", path, params={"ignore_unavailable": "true"})

    async def _put_template(self) -> None:
        body = template_body(self._names.template_patterns, self._settings)
        await self._request("PUT", f"/_index_template/{self._names.template}", body=body)

    async def _drop_template(self) -> None:
        try:
            await self._request("DELETE", f"/_index_template/{self._names.template}")
        except RefusedRequest as refused:
            if refused.status != HTTPStatus.NOT_FOUND:
                raise

    async def _ensure_chunks(self, suffix: str | None, space: VectorSpace, known: Generations) -> None:
        """As the others; but where the alias stands is the reindex's affair, and each generation has its own."""
        live = known.live
        mine = [one for one in known.all if suffix in one.indices]
        if not mine:
            number, space = (1, space) if live is None else (live.number, live.space)
            own = self._names.generation_alias(number, suffix)
            name = self._names.generation_index(number, suffix)
            await self._ensure_index(Index.CHUNKS, suffix, space, name=name, more_aliases=(own,))
            return
        name = (live or mine[0]).indices.get(suffix, "")
        if live is None and len(mine) > 1:
            alias = self._names.alias_of(Index.CHUNKS, suffix)
            msg = f"alias {alias} is lost: `hopline reindex --swap` or `--rollback` sets it"
            raise ConfigurationError(msg)
        if any(one.schema_version != MAPPING_VERSION for one in mine):
            self._refuse_version(name)
        require_space(known, name, space, rebuild=_REBUILD)
        missing = {
            self._names.generation_alias(one.number, suffix): one.indices[suffix]
            for one in mine
            if suffix not in one.aliased
        }
        if live is None:
            missing[self._names.alias_of(Index.CHUNKS, suffix)] = name
        await self._add_aliases(missing)

    async def _ensure_index(
        self,
        index: Index,
        suffix: str | None,
        space: VectorSpace,
        *,
        name: str | None = None,
        more_aliases: Sequence[str] = (),
    ) -> None:
        name, alias = name or self._names.index_of(index, suffix), self._names.alias_of(index, suffix)
        aliases = (alias, *more_aliases)
        # Whole body: the template holds what all have in common, and only for indices made by others.
        body = index_body(index, self._settings, space)
        body |= {"aliases": {one: {"is_write_index": True} for one in aliases}}
        try:
            await self._request("PUT", f"/{name}", body=body)
        except RefusedRequest as refused:
            if refused.error_type == "invalid_alias_name_exception":
                msg = f"an index is named {alias}, where an alias is due: delete it, or set another prefix"
                raise ConfigurationError(msg) from refused
            if refused.error_type != "resource_already_exists_exception":
                raise
            if (await self._recorded(name)).get("schema_version") != MAPPING_VERSION:
                self._refuse_version(name)
            if index is Index.CHUNKS:
                require_space(await self.generations(), name, space, rebuild=_REBUILD)
            await self._add_aliases(dict.fromkeys(aliases, name))

    def _refuse_version(self, name: str) -> None:
        msg = f"index {name} was made by another version of Hopline: {_REBUILD}"
        raise ConfigurationError(msg)

    async def _add_aliases(self, missing: Mapping[str, str]) -> None:
        """Alias → index."""
        actions = [
            {"add": {"index": name, "alias": alias, "is_write_index": True}}
            for alias, name in missing.items()
        ]
        if actions:
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
