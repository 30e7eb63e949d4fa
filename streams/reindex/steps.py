"""The steps of a reindex. Each may be called again, after a kill too: it goes on from what the cluster says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import msgspec

from indexers.domain.identity import Principal
from indexers.embedders.factory import identify_model, load_embedder
from indexers.errors import ConfigurationError, HoplineError
from indexers.opensearch.gate import Gate, VectorSpace
from indexers.opensearch.generations import Generation, Generations, MadeBy
from indexers.opensearch.retry import RetryPolicy
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from indexers.taken_embedder import made_by, recorded, taken
from streams.agents.config import AgentConfig
from streams.agents.embed.model import Model
from streams.reindex.copying import PASSES_MAX, Copier, PassReport, lacking
from streams.reindex.group import (
    members,
    second_group,
    start_at_end,
    wait_until_level,
    waiting_records,
)
from streams.reindex.status import status_of

_ATTEMPTS: Final = 6
#: The query services look every second; a request that began before ends within this.
_SETTLE_SECONDS: Final = 10.0
_LACKING_TRIES: Final = 20
_LACKING_SECONDS: Final = 1.0
_SHOWN: Final = 5
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindex:
    """HoplineError says what stands against a step; nothing was changed then. `patience_seconds`: as in a rebuild."""

    config: AgentConfig
    gate: Gate
    say: Say
    patience_seconds: float = 120.0
    settle_seconds: float = _SETTLE_SECONDS

    async def begin(self, target: EmbedderSettings) -> Generation:
        """An empty generation for the model, and a second group that is told of all that is written from here on."""
        known = await self.gate.generations()
        new = await asyncio.to_thread(made_by, target, self.config.indexing)
        embedder = await asyncio.to_thread(load_embedder, target)
        if known.fed is not None:
            fed = self._going_on(known, new)
            await start_at_end(self.config, fed.number)
            # A call that was killed may have left a tenant's own index out.
            await self.gate.make_generation(fed.number, _space(embedder), new, fed.counts)
            return fed
        if known.live is None:
            raise ConfigurationError("there is no index to embed anew: start the agents first")
        old = known.live.made_by or await self._made_by_settings(known.live)
        if new.model_id == old.model_id:
            raise ConfigurationError(f"the index holds vectors of {new.model_id} already")
        number = known.all[-1].number + 1
        self.say(
            f"generation {number}: {new.model_id}, beside generation {known.live.number}: {old.model_id}"
        )
        before = known.live.counts
        # A document that ingest indexes for the new one while both are there stands in the old one, too.
        await self.gate.describe_generation(
            known.live.number,
            made_by=msgspec.to_builtins(old),
            counts=sorted(map(list, {*before, new.cut})),
        )
        space = known.live.space
        await self.gate.ensure_indices(
            dimension=space.dimension, pair_id=space.pair_id, cosine_floor=space.cosine_floor
        )
        await start_at_end(self.config, number)
        await self.gate.make_generation(number, _space(embedder), new, {*before, old.cut})
        return self._fed(await self.gate.generations())

    async def fill(self) -> PassReport:
        """Passes until one finds nothing to do; the last one's report."""
        known = await self.gate.generations()
        fed = self._fed(known)
        async with self._copier(fed, known) as copier:
            for number in range(1, PASSES_MAX + 1):
                report = await copier.run_pass(await self.tenants())
                self.say(
                    f"pass {number}: {report.documents} documents, {report.embedded} embedded "
                    f"({report.chunks} chunks), {report.swept} rows of gone documents swept out, "
                    f"{len(report.unread)} not readable as indexed, {len(report.refused)} refused"
                )
                if not report.embedded and not report.swept:
                    break
        return report

    async def swap(self, *, allow_missing: int = 0) -> bool:
        """The fed generation is searched from here on. False: it was already."""
        known = await self.gate.generations()
        fed = self._fed(known)
        if fed.live:
            return False
        group = second_group(self.config, fed.number)
        if not await members(self.config, group):
            raise HoplineError(
                f"nobody works in group {group}: start `hopline agent embed --reindex`, which keeps the new"
                " generation up to date (the local stack starts it by itself)"
            )
        await wait_until_level(self.config, group, patience_seconds=self.patience_seconds)
        missing = await self._lacking(known, fed, allow_missing)
        if len(missing) > allow_missing:
            raise HoplineError(
                f"{len(missing)} documents are not in the new generation, among them "
                f"{'; '.join(missing[:_SHOWN])}: run `hopline reindex --to` again, or --swap --allow-missing"
            )
        await self.gate.serve_generation(fed.number)
        return True

    async def rollback(self) -> bool:
        """The old one is searched again. False: it was already."""
        known = await self.gate.generations()
        old, fed = known.old, self._fed(known)
        if not known.are_two or old is None:
            raise HoplineError("the old generation is gone: `hopline reindex --to` its model makes it anew")
        if old.live:
            return False
        await self.gate.serve_generation(old.number)
        waiting = await waiting_records(self.config, self.config.topics.group("embed"))
        self.say(
            f"generation {old.number} is searched; {fed.number} is kept up as well ({waiting} records wait)"
        )
        return True

    async def finish(self) -> bool:
        """Drops the old generation; then embed's own group has the new one. False: no reindex is open."""
        known = await self.gate.generations()
        fed = known.fed
        if fed is None:
            return False
        if not fed.live:
            raise HoplineError("the old generation is the one that is searched: --swap first, or --abort")
        self._require_named(fed)
        group = second_group(self.config, fed.number)
        if known.are_two and known.old is not None:
            await wait_until_level(self.config, group, patience_seconds=self.patience_seconds)
            self.say(f"dropping generation {known.old.number} in {self.settle_seconds:.0f} s")
            await asyncio.sleep(self.settle_seconds)
            await self.gate.drop_generation(known.old.number)
        # What embed's own group has committed went to the old one; up to there the second must have come.
        self.say("waiting for the second group to be level")
        await wait_until_level(self.config, group, patience_seconds=self.patience_seconds)
        await self.gate.describe_generation(fed.number, fed=False)
        return True

    async def abort(self) -> bool:
        """Drops the new generation. False: no reindex is open."""
        known = await self.gate.generations()
        fed = known.fed
        if fed is None:
            return False
        if fed.live:
            raise HoplineError("the new generation is the one that is searched: --rollback first")
        await self.gate.drop_generation(fed.number)
        return True

    async def status(self) -> dict[str, Any]:
        return await status_of(self.config, self.gate, await self.tenants())

    async def _lacking(self, known: Generations, fed: Generation, allowed: int) -> list[str]:
        """What both groups are just about is settled within seconds."""
        if known.old is None:
            return []
        old, new = self.gate.of_chunks(known.old.number), self.gate.of_chunks(fed.number)
        tenants = await self.tenants()
        for _ in range(_LACKING_TRIES):
            missing = await lacking(self.gate, old, new, tenants)
            if len(missing) <= allowed:
                break
            await asyncio.sleep(_LACKING_SECONDS)
        return missing

    def _going_on(self, known: Generations, new: MadeBy) -> Generation:
        fed = self._fed(known)
        if fed.made_by != new:
            name = "?" if fed.made_by is None else fed.made_by.model_id
            raise ConfigurationError(
                f"a reindex to {name} is open: end it first (`hopline reindex --finish` or `--abort`)"
            )
        if not known.are_two:
            _no_old()
        self.say(f"going on with generation {fed.number}")
        return fed

    def _fed(self, known: Generations) -> Generation:
        if known.fed is None:
            raise HoplineError("no reindex is open: `hopline reindex --to MODEL` begins one")
        return known.fed

    def _require_named(self, fed: Generation) -> None:
        own = identify_model(self.config.embedder)
        carried = {model for _, model in fed.counts}
        if fed.made_by is None or own.model_id == fed.made_by.model_id:
            return
        if own.pair_id == fed.space.pair_id and own.model_id not in carried:
            return
        raise ConfigurationError(
            f"HOPLINE_EMBEDDER__MODEL still names {own.model_id}: set it to {fed.made_by.model or 'nothing'}"
            f" (backend {fed.made_by.backend}) for every process first, which the next start of each will need"
        )

    async def _made_by_settings(self, live: Generation) -> MadeBy:
        own = identify_model(self.config.embedder)
        if own.pair_id != live.space.pair_id:
            raise ConfigurationError(
                f"the index holds vectors of {live.space.pair_id}, but HOPLINE_EMBEDDER__MODEL names {own.pair_id}:"
                " let it name the present model; --to names the new one"
            )
        return await asyncio.to_thread(made_by, self.config.embedder, self.config.indexing)

    async def tenants(self) -> list[Principal]:
        """Of all vaults, those of the memory tree too."""
        roots = await asyncio.to_thread(lambda: self.config.vault_tree.all_roots)
        return [Principal.pipeline(t) for t in dict.fromkeys(root.namespace.tenant_id for root in roots)]

    @asynccontextmanager
    async def _copier(self, fed: Generation, known: Generations) -> AsyncIterator[Copier]:
        by = fed.made_by
        assert by is not None  # noqa: S101 - `make_generation` wrote it
        settings = await asyncio.to_thread(_settings_of, self.config.embedder, known, fed, by)
        embedder = await asyncio.to_thread(load_embedder, settings)
        with (
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="model") as model,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="vault") as files,
        ):
            yield Copier(
                gate=self.gate,
                view=self.gate.of_chunks(fed.number),
                model=Model(embedder=embedder, executor=model, beat=lambda: None),
                vaults=self.config.open_vaults(),
                settings=self.config.indexing,
                chunker=by.chunker,
                files=files,
            )


@asynccontextmanager
async def open_reindex(config: AgentConfig, say: Say) -> AsyncIterator[Reindex]:
    gate = config.gate(RetryPolicy(attempts=_ATTEMPTS))
    try:
        yield Reindex(config=config, gate=gate, say=say)
    finally:
        await gate.close()


def _settings_of(
    configured: EmbedderSettings, known: Generations, fed: Generation, by: MadeBy
) -> EmbedderSettings:
    found = taken(configured, known, fed)
    return found if identify_model(found).model_id == by.model_id else recorded(configured, by)


def _space(embedder: Embedder) -> VectorSpace:
    return VectorSpace(
        pair_id=embedder.pair_id, dimension=embedder.dimension, cosine_floor=embedder.cosine_floor
    )


def _no_old() -> NoReturn:
    raise HoplineError("a finish was begun: run `hopline reindex --finish` again")
