"""The watcher over real engines, and what it said to the broker. There is no ingest: tests fill the index."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from indexers.errors import HoplineError
from indexers.opensearch.connect import connect
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.names import IndexNames
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import DocumentRow, Index
from indexers.settings import IndexingSettings, OpenSearchSettings, VaultRoot
from streams.admin import delete_topics, ensure_topics
from streams.events import FileChange, decode
from streams.settings import KafkaSettings, WatcherSettings
from streams.topics import Topics
from streams.watcher import service
from streams.watcher.status import TREE_NAME, ScanReport
from tests.conftest import Stack

PATIENCE_SECONDS = 20.0
#: Longer than a burst with its debounce: after it nothing more is coming.
QUIET_SECONDS = 1.5


def brief(event: FileChange) -> tuple[str, ...]:
    """Kind and path, and the other side of a move."""
    link = event.moved_from or event.moved_to
    return (event.kind, event.path) if link is None else (event.kind, event.path, link)


@dataclass(kw_only=True)
class Watched:
    config: service.WatcherConfig
    gate: Gate
    consumer: AIOKafkaConsumer

    @property
    def root(self) -> Path:
        return self.config.roots[0].path

    def status(self, name: str = "main") -> dict[str, Any]:
        path = self.config.status_folder / f"{name}.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    async def rescan(
        self, *, confirm_removals: bool = False, root: str = "main"
    ) -> ScanReport | HoplineError:
        results = await service.rescan(self.config, root=root, confirm_removals=confirm_removals)
        return results[root]

    @asynccontextmanager
    async def watcher(self) -> AsyncIterator[None]:
        """Runs while inside, from the end of its first scan."""
        for root in self.config.roots:
            (self.config.status_folder / f"{root.name}.json").unlink(missing_ok=True)
        (self.config.status_folder / f"{TREE_NAME}.json").unlink(missing_ok=True)
        stop = asyncio.Event()
        task = asyncio.create_task(service.watch(self.config, stop=stop))
        try:
            for root in self.config.roots:
                await self.until_state("watching" if root.path.is_dir() else "unavailable", root.name, task)
            if self.config.memories is not None:
                await self.until_state("watching", TREE_NAME, task)
            yield
        finally:
            stop.set()
            await asyncio.wait_for(task, PATIENCE_SECONDS)

    async def until_state(
        self, state: str, name: str = "main", task: asyncio.Task[None] | None = None
    ) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.status(name).get("state") != state:
            if task is not None and task.done():
                await task
            assert time.monotonic() < deadline, self.status(name)
            await asyncio.sleep(0.05)

    async def received(self, count: int) -> list[FileChange]:
        """The next `count` events, in order of version, and proof that no more follow."""
        found: list[FileChange] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found) < count and time.monotonic() < deadline:
            found += await self._poll(200)
        found += await self._poll(int(QUIET_SECONDS * 1000))
        assert len(found) == count, [brief(event) for event in found]
        return sorted(found, key=lambda event: event.version)

    async def received_at_least(self, count: int) -> list[FileChange]:
        """For what is sent again and again."""
        found: list[FileChange] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found) < count:
            assert time.monotonic() < deadline
            found += await self._poll(200)
        return found

    async def _poll(self, timeout_ms: int) -> list[FileChange]:
        batches = await self.consumer.getmany(timeout_ms=timeout_ms)
        return [decode(r.value, FileChange) for records in batches.values() for r in records]

    async def index(self, files: dict[str, bytes], *, version: int = 1) -> None:
        """As if ingest had indexed these files of the first root."""
        namespace = self.config.roots[0].namespace
        writes = [
            RowWrite(
                principal=namespace.principal,
                index=Index.DOCUMENTS,
                row_id=namespace.document(path).doc_id,
                action="index",
                row=document_row(self.config.roots[0], path, content, version),
                version=version,
            )
            for path, content in files.items()
        ]
        assert [r.status for r in await self.gate.write(writes)] == ["applied"] * len(writes)


def document_row(root: VaultRoot, path: str, content: bytes, version: int) -> DocumentRow:
    namespace = root.namespace
    return DocumentRow(
        tenant_id=namespace.tenant_id,
        agent_id=namespace.agent_id,
        team_id=namespace.team_id,
        scope=namespace.scope.value,
        doc_id=namespace.document(path).doc_id,
        path=path,
        vault_path=path,
        path_key=path,
        name_key=path,
        alias_keys=[],
        title=path,
        abstract="",
        doc_type="note",
        source="sync",
        tags=[],
        category=None,
        aliases=[],
        terms=[],
        language=None,
        content_hash=f"sha256:{hashlib.sha256(content).hexdigest()}",
        size=len(content),
        left_out_bytes=0,
        no_vector_reason=None,
        warnings=[],
        created_at=None,
        updated_at=None,
        indexed_at="2031-04-05T00:00:00+00:00",
        valid_from=None,
        expires_at=None,
        moved_from=None,
        version=version,
        event_id="e",
        parser_version="p",
        chunker_version="c",
        deleted=False,
        tombstone_until=None,
    )


@asynccontextmanager
async def watched(
    stack: Stack,
    prefix: str,
    folder: Path,
    *,
    roots: Sequence[VaultRoot] | None = None,
    settings: WatcherSettings | None = None,
    memories: Path | None = None,
) -> AsyncIterator[Watched]:
    kafka, opensearch = KafkaSettings(), OpenSearchSettings()
    if roots is None:
        (folder / "vault").mkdir()
        roots = (VaultRoot(name="main", path=folder / "vault"),)
    config = service.WatcherConfig(
        prefix=prefix,
        roots=tuple(roots),
        kafka=kafka,
        kafka_servers=stack.kafka_servers,
        opensearch=opensearch,
        opensearch_url=stack.opensearch_url,
        indexing=IndexingSettings(),
        # There is no ingest that a bulk could wait for.
        watcher=settings or WatcherSettings(bulk_patience_seconds=0.2),
        status_folder=folder / "status",
        memories=memories,
    )
    topics = Topics(prefix)
    client = connect(opensearch, stack.opensearch_url)
    gate = Gate(client, IndexNames(prefix=prefix), retry=RetryPolicy.once(), settings=opensearch)
    await gate.ensure_indices(dimension=8, pair_id="test")
    await ensure_topics(kafka, stack.kafka_servers, topics)
    consumer = AIOKafkaConsumer(bootstrap_servers=stack.kafka_servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topics.file_changes, p) for p in range(kafka.partitions)])
        yield Watched(config=config, gate=gate, consumer=consumer)
    finally:
        await consumer.stop()
        await gate.drop_indices()
        await gate.close()
        await delete_topics(kafka, stack.kafka_servers, [*topics.retention_ms])
