"""The agents in this process, over the real broker, node and models; records are fed or read."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from indexers.domain.identity import Namespace, Principal
from indexers.opensearch.gate import Gate
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.ports import Embedder, EntityExtractor
from indexers.settings import (
    EmbedderSettings,
    ExtractorSettings,
    IndexingSettings,
    OpenSearchSettings,
    VaultRoot,
)
from indexers.verify.report import VerifyReport
from streams.admin import delete_topics, ensure_topics
from streams.agents.config import AgentConfig
from streams.agents.embed import EmbedHandler
from streams.agents.extract import ExtractHandler
from streams.agents.ingest import IngestHandler
from streams.agents.link import LinkHandler
from streams.batch import Record
from streams.context import AgentContext
from streams.event_fields import new_event_fields
from streams.events import DeadLetter, FileChange, MemoryWrite, MentionsExtracted, decode, encode
from streams.producer import EventProducer
from streams.rebuild import verify_roots
from streams.settings import AgentSettings, KafkaSettings
from streams.tracing import OFF, Tracing, header_of
from streams.versions import VersionClock
from tests.conftest import Stack
from tests.handlers import (
    RenamedModel,
    context_of,
    embed_handler,
    extract_handler,
    ingest_handler,
    link_handler,
    shipped_embedder,
    shipped_extractor,
)


@dataclass(kw_only=True)
class Rig:
    """One tenant's vaults and the agents over them."""

    config: AgentConfig
    gate: Gate
    ingest: IngestHandler
    embed: EmbedHandler
    extract: ExtractHandler
    link: LinkHandler
    consumer: AIOKafkaConsumer
    clock: VersionClock = field(default_factory=VersionClock)
    #: Records read and not yet asked for.
    inbox: list[Record] = field(default_factory=list)
    offset: int = 0

    @property
    def root(self) -> VaultRoot:
        return self.config.roots[0]

    @property
    def home(self) -> Namespace:
        return self.root.namespace

    def saved(self, path: str, text: str | bytes, *, root: VaultRoot | None = None, **more: Any) -> Record:
        """The file written, and the watcher's word about it."""
        raw = text.encode() if isinstance(text, str) else text
        file = (root or self.root).path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
        return self.told(path, raw, root=root, **more)

    def told(self, path: str, raw: bytes | None, *, root: VaultRoot | None = None, **more: Any) -> Record:
        """`raw` None: by reference."""
        size = 0 if raw is None else len(raw)
        return self.change(path, root=root, kind="upserted", content=raw, size=size, **more)

    def removed(self, path: str, *, root: VaultRoot | None = None, **more: Any) -> Record:
        ((root or self.root).path / path).unlink(missing_ok=True)
        return self.change(path, root=root, kind="deleted", **more)

    def change(self, path: str, *, root: VaultRoot | None = None, **fields: Any) -> Record:
        ns = (root or self.root).namespace
        values: dict[str, Any] = {
            **new_event_fields(ns),
            "version": self.clock.next(),
            "path": path,
            "vault_path": path,
        }
        return self.record(encode(FileChange(**(values | fields))))

    def moved(self, old: str, new: str, text: str) -> tuple[Record, Record]:
        """The two words about a rename; the creation is the newer one."""
        deletion = self.removed(old, moved_to=new)
        return deletion, self.saved(new, text, moved_from=old)

    def record(self, value: bytes | None, *, topic: str | None = None) -> Record:
        self.offset += 1
        name = topic or self.config.topics.file_changes
        return Record(topic=name, partition=0, offset=self.offset, key=b"k", value=value, timestamp=0.0)

    def written(self, event: MemoryWrite) -> Record:
        return self.record(encode(event), topic=self.config.topics.memory_writes)

    async def feed(self, *records: Record) -> None:
        """One batch through ingest."""
        await self.ingest.commit(await self.ingest.prepare(records))

    async def announced(self) -> list[Record]:
        """What ingest has said to the later agents since the last call."""
        return await self.arrived(self.config.topics.documents)

    async def arrived(self, topic: str) -> list[Record]:
        """New records of the topic since the last call, of all partitions."""
        ends = await self.consumer.end_offsets(self.consumer.assignment())
        for partition, end in ends.items():
            while await self.consumer.position(partition) < end:
                for messages in (await self.consumer.getmany(timeout_ms=2_000)).values():
                    self.inbox += [
                        Record(
                            topic=m.topic,
                            partition=m.partition,
                            offset=m.offset,
                            key=m.key,
                            value=m.value,
                            timestamp=0.0,
                            trace=header_of(m.headers),
                        )
                        for m in messages
                    ]
        found = [r for r in self.inbox if r.topic == topic]
        self.inbox = [r for r in self.inbox if r.topic != topic]
        return found

    async def extract_records(self, records: Sequence[Record]) -> None:
        await self.extract.commit(await self.extract.prepare(records))

    async def mentions_told(self) -> list[MentionsExtracted]:
        """Events for link since the last call, in the order of their partitions."""
        return [decode(r.value, MentionsExtracted) for r in await self.arrived(self.config.topics.mentions)]

    async def link_records(self, records: Sequence[Record]) -> None:
        await self.link.commit(await self.link.prepare(records))

    async def link_all(self) -> None:
        """What extract has told since the last call."""
        await self.link_records(await self.arrived(self.config.topics.mentions))

    async def extract_asked(self) -> int:
        """Every request to extract again and what it leads to; how many pages."""
        pages = 0
        while asked := await self.arrived(self.config.topics.extract_requests):
            for record in asked:
                await self.extract_records([record])
                pages += 1
        return pages

    async def embed_records(self, records: Sequence[Record]) -> None:
        await self.embed.commit(await self.embed.prepare(records))

    async def embed_all(self) -> None:
        await self.embed_records(await self.announced())

    async def index(self, *records: Record) -> None:
        await self.feed(*records)
        await self.embed_all()

    async def rows(self, index: Index, tenant: str | None = None) -> dict[str, dict[str, Any]]:
        """All rows of the tenant by id, vectors left out."""
        await self.gate.refresh(index)
        principal = Principal.pipeline(self.home.tenant_id) if tenant is None else _pipeline(tenant)
        return {row.row_id: row.source async for row in self.gate.scan(principal, index, {"match_all": {}})}

    async def documents(self) -> dict[str, dict[str, Any]]:
        """Living documents by path."""
        rows = await self.rows(Index.DOCUMENTS)
        return {row["path"]: row for row in rows.values() if not row["deleted"]}

    async def edges(self) -> set[tuple[str, str, str | None, bool]]:
        """Of links that somebody wrote: (from path, target as written, path that it leads to, ambiguous)."""
        paths = {row["doc_id"]: row["path"] for row in (await self.rows(Index.DOCUMENTS)).values()}
        rows = (await self.rows(Index.LINKS)).values()
        links = [row for row in rows if row["link_type"] != "unlinked_mention"]
        assert all(row["resolved"] is (row["to_doc_id"] is not None) for row in links)
        return {
            (row["from_path"], row["target"], paths.get(row["to_doc_id"]), row["ambiguous"]) for row in links
        }

    async def chunk_counts(self) -> dict[str, int]:
        paths = {row["doc_id"]: row["path"] for row in (await self.rows(Index.DOCUMENTS)).values()}
        counts: dict[str, int] = {}
        for row in (await self.rows(Index.CHUNKS)).values():
            path = paths.get(row["doc_id"], f"? {row['doc_id']}")
            counts[path] = counts.get(path, 0) + 1
        return counts

    async def found(self, words: str) -> list[str]:
        """Paths of living documents whose text or title says these words."""
        query = {
            "bool": {
                "must": [{"multi_match": {"query": words, "fields": ["title", "body", "body.code"]}}],
                "filter": [{"term": {"deleted": False}}],
            }
        }
        await self.gate.refresh(Index.DOCUMENTS)
        rows = self.gate.scan(Principal.pipeline(self.home.tenant_id), Index.DOCUMENTS, query)
        return sorted([row.source["path"] async for row in rows])

    async def letters(self) -> list[DeadLetter]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.config.kafka_servers)
        await consumer.start()
        try:
            topic = self.config.topics.dead_letters
            parts = [TopicPartition(topic, p) for p in range(self.config.kafka.partitions)]
            consumer.assign(parts)
            await consumer.seek_to_beginning(*parts)
            ends = await consumer.end_offsets(parts)
            letters: list[DeadLetter] = []
            for part in parts:
                while await consumer.position(part) < ends[part]:
                    for messages in (await consumer.getmany(timeout_ms=2_000)).values():
                        letters += [decode(m.value, DeadLetter) for m in messages]
            return sorted(letters, key=lambda letter: letter.offset)
        finally:
            await consumer.stop()

    async def verify(self) -> VerifyReport:
        """Where a test leaves extraction out, what is missing for it is no finding."""
        [report] = await verify_roots(self.config, self.gate, [self.root], say=lambda _line: None)
        if not await self.rows(Index.EXTRACTIONS):
            report.counts.pop("missing_extraction", None)
            report.findings = [f for f in report.findings if f.kind != "missing_extraction"]
        return report

    async def verified(self) -> dict[str, int]:
        return dict((await self.verify()).counts)

    @property
    def computed(self) -> float:
        return self._count(self.embed.context, "hopline_stream_embeddings_total", outcome="computed")

    @property
    def reused(self) -> float:
        return self._count(self.embed.context, "hopline_stream_embeddings_total", outcome="reused")

    def skipped(self, reason: str) -> float:
        return self._count(self.ingest.context, "hopline_stream_skipped_total", reason=reason)

    def _count(self, context: AgentContext, name: str, **labels: str) -> float:
        return context.metrics.registry.get_sample_value(name, labels) or 0.0


def agent_config(
    stack: Stack, prefix: str, roots: Sequence[VaultRoot], *, memories: Path | None = None, **indexing: Any
) -> AgentConfig:
    return AgentConfig(
        memories=memories,
        prefix=prefix,
        roots=tuple(roots),
        kafka=KafkaSettings(bootstrap_servers=stack.kafka_servers, partitions=2),
        kafka_servers=stack.kafka_servers,
        opensearch=OpenSearchSettings(url=stack.opensearch_url),
        opensearch_url=stack.opensearch_url,
        extractor=ExtractorSettings(),
        embedder=EmbedderSettings(),
        indexing=IndexingSettings(**indexing),
        agent=AgentSettings(),
    )


def vault_root(folder: Path, name: str = "main", **owner: Any) -> VaultRoot:
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    return VaultRoot(name=name, path=path, **({"tenant": "acme", "agent": "ada"} | owner))


@contextlib.asynccontextmanager
async def opened_rig(
    config: AgentConfig,
    *,
    embedder: Embedder | None = None,
    extractor: EntityExtractor | None = None,
    ensure: bool = True,
    tracing: Tracing = OFF,
) -> AsyncIterator[Rig]:
    """Topics and indices of the prefix, removed afterwards."""
    embedder = embedder or shipped_embedder()
    extractor = extractor or shipped_extractor()
    gate = config.gate(RetryPolicy(attempts=5))
    producer = EventProducer(config.kafka, config.kafka_servers, tracing=tracing)
    consumer = AIOKafkaConsumer(bootstrap_servers=config.kafka_servers, auto_offset_reset="earliest")
    with ThreadPoolExecutor(max_workers=3) as executor:
        try:
            await ensure_topics(config.kafka, config.kafka_servers, config.topics)
            await consumer.start()
            topics = config.topics
            read = (topics.memory_writes, topics.documents, topics.mentions, topics.extract_requests)
            consumer.assign([TopicPartition(t, p) for t in read for p in range(config.kafka.partitions)])
            if ensure:
                await gate.ensure_indices(dimension=embedder.dimension, pair_id=embedder.pair_id)
            yield Rig(
                config=config,
                gate=gate,
                ingest=ingest_handler(
                    config, gate, context_of(config, "ingest", producer, tracing), embedder, executor
                ),
                embed=embed_handler(
                    config, gate, context_of(config, "embed", producer, tracing), embedder, executor
                ),
                extract=extract_handler(
                    config, gate, context_of(config, "extract", producer, tracing), extractor, executor
                ),
                link=link_handler(config, gate, context_of(config, "link", producer, tracing), executor),
                consumer=consumer,
            )
        finally:
            await consumer.stop()
            await gate.drop_indices()
            await gate.close()
            await producer.stop()
            names = list(config.topics.retention_ms)
            await delete_topics(config.kafka, config.kafka_servers, names)


def event_of(record: Record) -> FileChange:
    return msgspec.json.decode(record.value or b"", type=FileChange)


def _pipeline(tenant: str) -> Principal:
    from indexers.domain.identity import TenantId

    return Principal.pipeline(TenantId(tenant))


@contextlib.asynccontextmanager
async def reopened(
    rig: Rig, config: AgentConfig, model_id: str | None = None, *, extractor: EntityExtractor | None = None
) -> AsyncIterator[Rig]:
    """The same indices and topics under agents with other settings and other models."""
    shipped, named = shipped_embedder(), extractor or shipped_extractor()
    model: Any = shipped if model_id is None else RenamedModel(shipped, model_id)
    producer = EventProducer(config.kafka, config.kafka_servers)
    with ThreadPoolExecutor(max_workers=3) as executor:
        try:
            yield Rig(
                config=config,
                gate=rig.gate,
                ingest=ingest_handler(
                    config, rig.gate, context_of(config, "ingest", producer), model, executor
                ),
                embed=embed_handler(config, rig.gate, context_of(config, "embed", producer), model, executor),
                extract=extract_handler(
                    config, rig.gate, context_of(config, "extract", producer), named, executor
                ),
                link=link_handler(config, rig.gate, context_of(config, "link", producer), executor),
                consumer=rig.consumer,
                inbox=rig.inbox,
                clock=rig.clock,
            )
        finally:
            await producer.stop()
