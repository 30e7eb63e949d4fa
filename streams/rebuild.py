"""The index from the vault alone: wait for quiet, drop, send every file again, wait for quiet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from prometheus_client import CollectorRegistry

from indexers.control import read_labels
from indexers.domain.identity import EntityNamespace
from indexers.embedders.factory import identify_model, load_token_counter
from indexers.erasures import restore_fences
from indexers.errors import HoplineError
from indexers.extractors.factory import identify_extractor
from indexers.linking.unlinked import Naming
from indexers.linking.unlinked_texts import VaultTexts
from indexers.opensearch.gate import Gate
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import REBUILT
from indexers.planning import IndexVersions
from indexers.settings import VaultRoot
from indexers.vault.content import read_if_there
from indexers.vault.local import LocalVaultFiles
from indexers.vault.relations import read_statements
from indexers.verify import Verifier, VerifyReport
from indexers.verify.entities import EntityVerifier
from streams.admin import ensure_topics
from streams.agents.config import AgentConfig, require_indices, settled
from streams.agents.link.journal import curation_records, roots_of
from streams.clearing import clear_entities, clear_namespace
from streams.events import encode
from streams.lag import LagReader
from streams.producer import EventProducer, OutgoingRecord
from streams.settings import WatcherSettings
from streams.versions import VersionClock
from streams.watcher.changes import EventFactory
from streams.watcher.metrics import WatcherMetrics
from streams.watcher.pacing import Pacing, open_pacing
from streams.watcher.reading import BatchReader

AGENTS = ("ingest", "embed", "extract", "link")
#: A batch between two topics is in none of them: quiet must be seen more than once.
QUIET_LOOKS = 3
LOOK_SECONDS = 0.5
COMMAND_ATTEMPTS = 6

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilder:
    """One run of `hopline rebuild`. `patience_seconds`: longest time in which the agents may stand still."""

    config: AgentConfig
    gate: Gate
    producer: EventProducer
    say: Say
    clock: VersionClock
    #: None: files are sent as fast as the broker takes them.
    pacing: Pacing | None = None
    patience_seconds: float = 120.0

    async def run(self, roots: Sequence[VaultRoot], *, everything: bool) -> dict[str, int]:
        """Files sent of each root. `everything`: the indices are made anew, for all tenants."""
        if (await self.gate.generations()).are_two:
            msg = "a reindex is open: end it first (`hopline reindex --finish` or `--abort`)"
            raise HoplineError(msg)
        await self.wait_until_quiet("the agents to finish what is under way")
        await asyncio.to_thread(self._require_journals, roots)
        if everything:
            self.say("dropping the indices")
            await self.gate.drop_indices(REBUILT)
            await require_indices(self.gate, identify_model(self.config.embedder))
        else:
            for root in roots:
                await self._clear(root)
        await self._restore_fences(roots)
        await self._replay_curation(roots)
        sent = {root.name: await self._send(root) for root in roots}
        await self.wait_until_quiet("the agents to index")
        return sent

    @property
    def _naming(self) -> Naming:
        """Of other roots' texts, whose files stay as they are."""
        indexing = self.config.indexing
        files = self.config.vault_tree
        texts = VaultTexts(
            read_file=lambda key: read_if_there(files, key, indexing.document_max_bytes), settings=indexing
        )
        return Naming(texts=texts, in_degree_max=indexing.name_in_degree_max)

    async def _clear(self, root: VaultRoot) -> None:
        self.say(f"removing the rows of {root.name}")
        self.clock.observe(await clear_namespace(self.gate, root.namespace, self._naming))
        clearing = clear_entities(self.gate, root.namespace, topics=self.config.topics, clock=self.clock)
        async with aclosing(clearing) as pages:
            async for records in pages:
                await self.producer.send_all(records)

    async def _restore_fences(self, roots: Sequence[VaultRoot]) -> None:
        """What is erased stays out, whatever is replayed after the rows went. Of all roots' tenants."""
        known = await asyncio.to_thread(lambda: self.config.vault_tree.all_roots)
        days = self.config.indexing.tombstone_days
        for tenant_id in dict.fromkeys(root.namespace.tenant_id for root in (*roots, *known)):
            fences = await restore_fences(self.gate, tenant_id, days=days, now=datetime.now(UTC))
            if fences:
                self.say(f"{tenant_id}: {fences} erased documents stay out")

    def _require_journals(self, roots: Sequence[VaultRoot]) -> None:
        """Before anything is removed. Blocking; raises VaultUnavailable."""
        for root in roots:
            read_statements(root)
        for root in self._deciding(roots):
            curation_records(root, self.config.topics)

    def _deciding(self, roots: Sequence[VaultRoot]) -> list[VaultRoot]:
        """Every root of the namespaces: it was the first by name that was written to."""
        namespaces = {EntityNamespace.of(root.namespace) for root in roots}
        known = self.config.vault_tree.all_roots
        return list({r.name: r for owner in namespaces for r in roots_of(known, owner)}.values())

    async def _replay_curation(self, roots: Sequence[VaultRoot]) -> None:
        """What curators decided, read once the rows are gone: a later command writes its own row."""
        for root in self._deciding(roots):
            records, left_out = await asyncio.to_thread(curation_records, root, self.config.topics)
            await self.producer.send_all(records)
            if records or left_out:
                self.say(f"{root.name}: {len(records)} decisions of curators sent, {left_out} lines left out")

    async def wait_until_quiet(self, what: str) -> None:
        quiet, last, moved_at = 0, -1, time.monotonic()
        async with _lags(self.config) as backlog:
            while quiet < QUIET_LOOKS:
                waiting = await backlog()
                if waiting != last:
                    last, moved_at = waiting, time.monotonic()
                    if waiting:
                        self.say(f"waiting for {what}: {waiting} records")
                quiet = 0 if waiting else quiet + 1
                if time.monotonic() - moved_at > self.patience_seconds and waiting:
                    msg = (
                        f"{waiting} records wait and nothing moved for {self.patience_seconds:.0f} s: "
                        "are the agents running? (`hopline status`)"
                    )
                    raise HoplineError(msg)
                await asyncio.sleep(LOOK_SECONDS)

    async def _send(self, root: VaultRoot) -> int:
        files = LocalVaultFiles(root.path)
        inline = self.config.indexing.inline_max_bytes
        reader = BatchReader(files=files, clock=self.clock, inline_max_bytes=inline)
        factory = EventFactory(namespace=root.namespace)
        entries = await asyncio.to_thread(files.entries)
        sent, more = 0, True
        while more:
            room = None if self.pacing is None else await self.pacing.room(reader.batch_files)
            reads, problems, more = await asyncio.to_thread(reader.batch, entries, room)
            events = [factory.upserted(read, origin="rebuild", moved_from=None) for read in reads]
            topic = self.config.topics.file_changes
            await self.producer.send_all(
                [
                    OutgoingRecord(topic=topic, key=event.document.record_key, value=encode(event))
                    for event in events
                ]
            )
            sent += len(events)
            for problem in problems:
                self.say(f"left out: {problem.path} ({problem.reason})")
            self.say(f"{root.name}: {sent} files sent")
        return sent


@asynccontextmanager
async def open_rebuilder(config: AgentConfig, say: Say, watcher: WatcherSettings) -> AsyncIterator[Rebuilder]:
    metrics = WatcherMetrics(CollectorRegistry())
    pacing = open_pacing(
        watcher, config.kafka, config.kafka_servers, config.topics, metrics=metrics, stop=asyncio.Event()
    )
    gate = config.gate(RetryPolicy(attempts=COMMAND_ATTEMPTS))
    try:
        await ensure_topics(config.kafka, config.kafka_servers, config.topics)
        async with EventProducer(config.kafka, config.kafka_servers) as producer:
            yield Rebuilder(
                config=config, gate=gate, producer=producer, say=say, clock=VersionClock(), pacing=pacing
            )
    finally:
        await gate.close()
        if pacing is not None:
            await pacing.reader.close()


@asynccontextmanager
async def _lags(config: AgentConfig) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    readers = {
        agent: LagReader(config.kafka, config.kafka_servers, config.topics.group(agent)) for agent in AGENTS
    }

    async def backlog() -> int:
        waiting = 0
        for agent, reader in readers.items():
            waiting += sum(part.lag for part in await reader.read(config.topics.read_by(agent)))
        return waiting

    try:
        # A fresh broker has no coordinator for the group for a moment.
        yield lambda: RetryPolicy(attempts=COMMAND_ATTEMPTS).call(backlog)
    finally:
        for reader in readers.values():
            await reader.close()


async def verify_roots(
    config: AgentConfig, gate: Gate, roots: Sequence[VaultRoot], *, say: Say
) -> list[VerifyReport]:
    """One report a root, each as that root's tenant. Names, which several roots may share, stand in the first's."""
    config, known = await settled(config, gate)
    counter = await asyncio.to_thread(load_token_counter, config.embedder)
    model_id = identify_model(config.embedder).model_id
    versions = IndexVersions.of(counter, model_id, config.indexing, known)
    extractor_id = await asyncio.to_thread(identify_extractor, config.extractor)
    owners = [EntityNamespace.of(root.namespace) for root in roots]
    labels = await read_labels(gate, owners)
    reports = [
        await Verifier(
            gate=gate,
            name=root.name,
            namespace=root.namespace,
            files=LocalVaultFiles(root.path),
            counter=counter,
            settings=config.indexing,
            versions=versions,
            fingerprint=labels[owner].labels.fingerprint(extractor_id) if not labels[owner].problem else None,
            statements=partial(read_statements, root),
            progress=lambda report: say(f"{report.root}: {report.files} files, {report.documents} documents"),
        ).run()
        for root, owner in zip(roots, owners, strict=True)
    ]
    for owner in dict.fromkeys(owners):
        report = reports[owners.index(owner)]
        say(f"{report.root}: names of {owner.owner}")
        await EntityVerifier(gate=gate, namespace=owner, report=report).run()
    return reports
