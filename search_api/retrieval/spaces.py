"""Which vectors a search asks, and the model that makes its own: always of one generation of chunks.

While a reindex is open there are two; each request takes one of them at its beginning and stays with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from indexers.errors import ConfigurationError, RefusedRequest, Transient
from indexers.opensearch.gate import Gate
from indexers.opensearch.generations import Generation, Generations
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from indexers.taken_embedder import note_taken, taken
from search_api.retrieval.query_vectors import QueryVectors
from search_api.retrieval.recall import Recall

#: Between two looks: the old generation is kept far longer after a swap.
LOOK_SECONDS: Final = 1.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpace:
    vectors: QueryVectors
    recall: Recall
    #: False: taken before the store was looked at, so it may be the wrong one.
    is_settled: bool = True

    @property
    def embedder(self) -> Embedder:
        return self.vectors.embedder


class Spaces(Protocol):
    @property
    def now(self) -> QuerySpace:
        """What a request that begins now is to take. Before the first look it may turn out to be another."""
        ...

    async def settled(self) -> QuerySpace:
        """The same, from a look at the store where there was none yet. Transient while that isn't possible."""
        ...


@dataclass(frozen=True, slots=True)
class OneSpace:
    """For an index that nobody reindexes."""

    now: QuerySpace

    async def settled(self) -> QuerySpace:
        return self.now


class GenerationSpaces:
    """The generations as they are, looked at every second. `load`: blocking, by settings of the query side."""

    def __init__(
        self,
        gate: Gate,
        settings: EmbedderSettings,
        embedder: Embedder,
        executor: Executor,
        *,
        load: Callable[[EmbedderSettings], Embedder],
        entries: int,
        filter_ids_max: int,
    ) -> None:
        """`embedder`: that of the settings, loaded."""
        self._gate = gate
        self._settings = settings
        self._load = load
        self._executor = executor
        self._entries = entries
        self._filter_ids_max = filter_ids_max
        self._embedders: dict[str, Embedder] = {settings.model_dump_json(): embedder}
        self._spaces: dict[tuple[int | None, str], QuerySpace] = {}
        self._now = replace(self._space(None, embedder), is_settled=False)
        self._is_known = False
        self._looking = asyncio.Lock()
        #: Why a generation can't be asked here; None: all can.
        self.problem: str | None = None

    @property
    def now(self) -> QuerySpace:
        return self._now

    async def settled(self) -> QuerySpace:
        if not self._is_known:
            await self.look()
        return self._now

    async def look(self) -> Generations:
        """What is searched from here on. A model that has to be loaded first changes it when it is there."""
        async with self._looking:
            known = await self._gate.generations()
            problems: list[str] = []
            if known.live is not None:
                await self._serve(known, known.live, problems)
                # So that the swap finds its model loaded.
                for other in (one for one in known.all if not one.live and self._is_known):
                    await self._ready(known, other, problems)
                self._is_known = True
            self._note(problems)
            return known

    async def follow(self) -> None:
        """For ever; a store that is away changes nothing."""
        while True:
            try:
                await self.look()
            except (Transient, RefusedRequest, ConfigurationError) as fault:
                log.debug("generations.unknown", reason=str(fault))
            await asyncio.sleep(LOOK_SECONDS)

    async def _serve(self, known: Generations, live: Generation, problems: list[str]) -> None:
        space = await self._ready(known, live, problems)
        if space is not None and space is not self._now:
            log.info("generation.served", generation=live.number, model=space.embedder.model_id)
            self._now = space
        gone = [key for key in self._spaces if key[0] not in {None, *(one.number for one in known.all)}]
        for key in gone:
            del self._spaces[key]
            if key[1] not in {other for _, other in self._spaces}:
                self._embedders.pop(key[1], None)

    async def _ready(self, known: Generations, one: Generation, problems: list[str]) -> QuerySpace | None:
        """None, and why: its model can't be loaded here."""
        try:
            settings = taken(self._settings, known, one)
            key = settings.model_dump_json()
            if key not in self._embedders:
                note_taken(self._settings, settings)
                self._embedders[key] = await asyncio.to_thread(self._load, settings)
        except ConfigurationError as fault:
            problems.append(f"generation {one.number} of the chunks can't be asked here: {fault}")
            return None
        embedder = self._embedders[key]
        if known.are_two and embedder.pair_id != one.space.pair_id:
            problems.append(
                f"generation {one.number} holds vectors of {one.space.pair_id}: no model for it here"
            )
            return None
        # One of before there were generations gets its alias at the next start of any agent.
        number = one.number if one.aliased == one.indices.keys() else None
        if (number, key) not in self._spaces:
            self._spaces[number, key] = self._space(number, embedder)
        return self._spaces[number, key]

    def _space(self, number: int | None, embedder: Embedder) -> QuerySpace:
        return QuerySpace(
            vectors=QueryVectors(embedder, self._executor, entries=self._entries),
            recall=Recall(self._gate.of_chunks(number), filter_ids_max=self._filter_ids_max),
        )

    def _note(self, problems: list[str]) -> None:
        problem = "; ".join(problems) or None
        if problem is not None and problem != self.problem:
            log.error("generation.not_servable", reason=problem)
        self.problem = problem
