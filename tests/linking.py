"""The link agent in this process over the real broker and node, and the events that extract would send it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from indexers.domain.entities.clusters import cluster_all
from indexers.domain.entities.curation import CurationKind
from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, Namespace, Principal
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from indexers.settings import VaultRoot
from indexers.vault.journal import Journal
from streams.agents.config import AgentConfig
from streams.agents.link import LinkHandler
from streams.agents.link.journal import CurationJournal
from streams.batch import Record
from streams.event_fields import new_event_fields
from streams.events import CurationCommand, ExtractedMention, MentionsExtracted, encode
from streams.producer import EventProducer
from streams.versions import VersionClock
from tests.conftest import Stack
from tests.handlers import context_of, progress_of
from tests.store import document_row, opened_gate

Rows = dict[str, dict[str, Any]]
#: What another indexing of the same texts may say otherwise.
_OF_THE_INDEXING = ("version",)


@dataclass(kw_only=True)
class LinkRig:
    """One worker. Documents are rows without a text: link never looks at one."""

    config: AgentConfig
    gate: Gate
    link: LinkHandler
    clock: VersionClock = field(default_factory=VersionClock)
    offset: int = 0

    @property
    def home(self) -> Namespace:
        return self.config.roots[0].namespace

    @property
    def owner(self) -> EntityNamespace:
        return EntityNamespace.of(self.home)

    async def stored(
        self, path: str, *, version: int | None = None, deleted: bool = False, home: Namespace | None = None
    ) -> int:
        """The document's row as ingest leaves it; its version."""
        ns = home or self.home
        key = ns.document(path)
        version = self.clock.next() if version is None else version
        row = document_row(ns, doc_id=key.doc_id, path=key.path, version=version, deleted=deleted, body=None)
        await self.gate.write(
            [
                RowWrite(
                    principal=ns.principal,
                    index=Index.DOCUMENTS,
                    row_id=key.doc_id,
                    action="index",
                    row=row,
                    version=version,
                )
            ]
        )
        return version

    def told(
        self, path: str, label: str, *surfaces: str, version: int, home: Namespace | None = None, **more: Any
    ) -> Record:
        """Names one after the other, as if the text were their list."""
        ns = home or self.home
        mentions: list[ExtractedMention] = []
        at = 0
        for surface in surfaces:
            mentions.append(
                ExtractedMention(
                    surface=surface,
                    start=at,
                    end=at + len(surface),
                    weight=0.9,
                    sentence=f"{surface} stands in {path}.",
                )
            )
            at += len(surface) + 1
        values: dict[str, Any] = {
            **new_event_fields(ns),
            "version": version,
            "path": path,
            "kind": "upserted",
            "doc_id": ns.document(path).doc_id,
            "label": label,
            "mentions": mentions,
        }
        key = EntityNamespace.of(ns).record_key(values["label"])
        return self.record(encode(MentionsExtracted(**(values | more))), key=key)

    async def said(
        self, path: str, names: Mapping[str, str | Sequence[str]], *, home: Namespace | None = None
    ) -> list[Record]:
        """The document's row, and the events of its names by label."""
        version = await self.stored(path, home=home)
        return [
            self.told(
                path, label, *([found] if isinstance(found, str) else found), version=version, home=home
            )
            for label, found in names.items()
        ]

    async def gone(
        self, path: str, *labels: str, home: Namespace | None = None, erased: bool = False
    ) -> list[Record]:
        version = await self.stored(path, deleted=True, home=home)
        more = {"kind": "deleted", "erased": erased}
        return [self.told(path, label, version=version, home=home, **more) for label in labels]

    def command(self, kind: CurationKind, label: str, *names: str, **more: Any) -> Record:
        """By the keeper of the namespace, about names as people write them."""
        ns = self.owner.namespace
        values: dict[str, Any] = {
            **new_event_fields(ns),
            "version": self.clock.next(),
            "kind": kind,
            "label": label,
            "keys": [name_key(name, label) for name in names],
            "by": "curator",
            "reason": "because",
        }
        command = CurationCommand(**(values | more))
        return self.record(encode(command), key=self.owner.record_key(label))

    def record(self, value: bytes | None, *, key: bytes | None = None) -> Record:
        self.offset += 1
        return Record(
            topic=self.config.topics.mentions,
            partition=0,
            offset=self.offset,
            key=key,
            value=value,
            timestamp=0.0,
        )

    async def feed(self, *records: Record | Sequence[Record]) -> None:
        """One batch."""
        flat = [r for given in records for r in ([given] if isinstance(given, Record) else given)]
        await self.link.commit(await self.link.prepare(flat))

    async def rows(self, index: Index) -> Rows:
        await self.gate.refresh(index)
        principal = Principal.pipeline(self.home.tenant_id)
        return {row.row_id: row.source async for row in self.gate.scan(principal, index, {"match_all": {}})}

    async def graph(self) -> dict[str, Rows]:
        """All rows that link writes, but for those of the commands themselves."""
        return {index: await self.rows(index) for index in (Index.ENTITIES, Index.MENTIONS, Index.PROPOSALS)}

    async def clear(self) -> None:
        """Nothing of the tenant's graph is left; its documents are. Rows of the same versions may come again."""
        principal = Principal.pipeline(self.home.tenant_id)
        for index in (Index.ENTITIES, Index.MENTIONS, Index.PROPOSALS, Index.CURATION):
            await self.gate.refresh(index)
            await self.gate.write(
                [
                    RowWrite(
                        principal=principal, index=index, row_id=r.row_id, action="delete", version=r.version
                    )
                    async for r in self.gate.scan(principal, index, {"match_all": {}})
                ]
            )

    async def entities(self) -> dict[str, tuple[int, list[str]]]:
        """Name shown → documents that mention it, all its keys."""
        rows = list((await self.rows(Index.ENTITIES)).values())
        keys: dict[str, list[str]] = {}
        for row in rows:
            keys.setdefault(row["entity_id"], []).append(row["key"])
        return {
            row["name"]: (row["mention_count"], sorted(keys[row["entity_id"]]))
            for row in rows
            if row["canonical"]
        }

    async def check_clusters(self, label: str, **decided: Any) -> None:
        """Every row points where the clustering of all names by reference says."""
        rows = [row for row in (await self.rows(Index.ENTITIES)).values() if row["label"] == label]
        proposals = [row for row in (await self.rows(Index.PROPOSALS)).values() if row["label"] == label]
        due = cluster_all(
            [row["key"] for row in rows], label, decided.get("apart", ()), decided.get("merges", ())
        )
        ids = {row["name_id"]: row["key"] for row in rows}
        found = {row["key"]: (ids.get(row["likeness_id"]), ids.get(row["entity_id"])) for row in rows}
        assert found == {key: (p.likeness_key, p.entity_key) for key, p in due.placements.items()}
        assert sorted((p["key"], p["other_key"], p["reason"]) for p in proposals) == sorted(
            (p.key, p.other, p.reason) for found in due.proposals.values() for p in found
        )

    def journal(self, root: VaultRoot | None = None) -> list[bytes]:
        path = (root or self.config.roots[0]).path / ".hopline/curation.jsonl"
        return list(Journal(path.parent.parent, path.name).lines())


@contextlib.asynccontextmanager
async def entity_indices(stack: Stack) -> AsyncIterator[str]:
    """The prefix of indices that the tests of a module share; each test takes a tenant of its own."""
    prefix = f"t{uuid.uuid4().hex[:12]}"
    async with opened_gate(stack.opensearch_url, prefix):
        yield prefix


@contextlib.asynccontextmanager
async def opened_link_rig(config: AgentConfig) -> AsyncIterator[LinkRig]:
    """A worker over indices that are there, with connections of its own."""
    gate = config.gate(RetryPolicy(attempts=5))
    producer = EventProducer(config.kafka, config.kafka_servers)
    with ThreadPoolExecutor(max_workers=1) as files:
        try:
            yield LinkRig(config=config, gate=gate, link=_handler(config, gate, producer, files))
        finally:
            await gate.close()
            await producer.stop()


def own_tenant() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


def _handler(
    config: AgentConfig, gate: Gate, producer: EventProducer, files: ThreadPoolExecutor
) -> LinkHandler:
    context = context_of(config, "link", producer)
    return LinkHandler(
        gate=gate,
        journal=CurationJournal(vaults=config.open_vaults()),
        context=context,
        progress=progress_of(gate, context),
        files=files,
    )


def without_versions(rows: Rows) -> Rows:
    return {
        row_id: {name: value for name, value in row.items() if name not in _OF_THE_INDEXING}
        for row_id, row in rows.items()
    }


async def feed_all(rig: LinkRig, batches: Sequence[Sequence[Record]]) -> None:
    for batch in batches:
        await rig.feed(*batch)
        await asyncio.sleep(0)
