"""Vectors of queries: computed off the event loop, kept for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import Executor

from indexers.domain.identity import Principal, TenantId
from indexers.ports import Embedder, Vectors

_Key = tuple[TenantId, str, str]


class QueryVectors:
    """A least-recently-used cache of query vectors.

    The tenant is part of the key, so that not even the time of an answer tells one tenant what another asked.
    It holds no result, only the vector of the very text that the asker gave.
    """

    def __init__(self, embedder: Embedder, executor: Executor, *, entries: int) -> None:
        self._embedder = embedder
        self._executor = executor
        self._entries = entries
        self._known: OrderedDict[_Key, Vectors] = OrderedDict()

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    def begin(self, principal: Principal, text: str) -> tuple[asyncio.Future[Vectors], bool]:
        """The vector to wait for, which is made meanwhile, and whether it was known."""
        key = (principal.tenant_id, self._embedder.model_id, text)
        loop = asyncio.get_running_loop()
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            found: asyncio.Future[Vectors] = loop.create_future()
            found.set_result(known)
            return found, True
        making = loop.run_in_executor(self._executor, self._embedder.embed_query, text)
        making.add_done_callback(lambda made: self._keep(key, made))
        return making, False

    def _keep(self, key: _Key, made: asyncio.Future[Vectors]) -> None:
        if made.cancelled() or made.exception() is not None:
            return
        self._known[key] = made.result()
        while len(self._known) > self._entries:
            self._known.popitem(last=False)
