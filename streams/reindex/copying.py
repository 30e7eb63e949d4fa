"""Documents that are there already → the fed generation, by the rules of the embed agent.

Repeating any of it changes nothing: what stands there with the right text, version and model is passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from indexers.domain.identity import (
    AgentId,
    DocumentId,
    DocumentKey,
    Namespace,
    Principal,
    Scope,
    TeamId,
    TenantId,
)
from indexers.errors import PoisonRecord
from indexers.opensearch.find import DOCUMENTS_MAX, Found, Wanted, find_all, scan_pages
from indexers.opensearch.gate import Gate, RowRef, StoredRow
from indexers.opensearch.rows import FACT_FIELDS, DocumentFacts, Index
from indexers.opensearch.templates import OWNER_FIELDS
from indexers.settings import IndexingSettings
from streams.agents.documents import Word, read_text, states_of
from streams.agents.embed.model import Model, keyed_texts
from streams.agents.embed.reuse import stored_vectors
from streams.agents.embed.texts import Texts, cut_anew, texts_of
from streams.agents.embed.write import (
    chunk_removal,
    remove_outdated,
    remove_superseded,
    vectors_of,
    write_chunks,
)
from streams.agents.vaults import Vaults
from streams.batch import Record
from streams.events import DocumentChanged, now_iso

#: Documents read, cut and embedded at once: what bounds memory.
BATCH: Final = 32
PASSES_MAX: Final = 6
_LIVING: Final[dict[str, Any]] = {
    "bool": {
        "filter": [{"term": {"deleted": False}}],
        "must_not": [{"exists": {"field": "no_vector_reason"}}],
    }
}
_DOCUMENT_FIELDS: Final = (
    *OWNER_FIELDS, "doc_id", "path", "content_hash", "chunker_version", "version", "event_id", *FACT_FIELDS,
)  # fmt: skip
_CHUNK_FIELDS: Final = ("doc_id", "ordinal", "chunk_hash", "model_id", "chunker_version", "version")


@dataclass(slots=True, kw_only=True)
class PassReport:
    """`unread`: files that are gone or changed since, whose events are on the way; or that can't be read."""

    documents: int = 0
    embedded: int = 0
    chunks: int = 0
    swept: int = 0
    unread: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copier:
    """Into the generation that `view` means. `files`: a thread for reading and cutting."""

    gate: Gate
    view: Gate
    model: Model
    vaults: Vaults
    settings: IndexingSettings
    chunker: str
    files: Executor

    async def run_pass(self, tenants: Sequence[Principal]) -> PassReport:
        report = PassReport()
        await self.gate.refresh(Index.DOCUMENTS)
        await self.view.refresh(Index.CHUNKS)
        for principal in tenants:
            await self._sweep(principal, report)
            await self._fill(principal, report)
        return report

    async def _sweep(self, principal: Principal, report: PassReport) -> None:
        """Rows whose document is gone: an erasure that met a copy which was killed waits for this."""
        wanted = Wanted(
            principal=principal, index=Index.CHUNKS, query={"match_all": {}}, fields=("doc_id", "version")
        )
        async with aclosing(scan_pages(self.view, wanted)) as pages:
            async for rows in pages:
                ids = dict.fromkeys(row.source["doc_id"] for row in rows)
                states = await states_of(
                    self.gate, [RowRef(principal=principal, row_id=doc_id) for doc_id in ids]
                )
                removals = []
                for row in rows:
                    state = states.get(DocumentId(row.source["doc_id"]))
                    if state is None or state.deleted or not state.has_chunks:
                        version = row.source["version"] if state is None else state.version
                        removals.append(chunk_removal(principal, row.row_id, version))
                if removals:
                    report.swept += len(removals)
                    await self.view.write(removals)

    async def _fill(self, principal: Principal, report: PassReport) -> None:
        wanted = Wanted(principal=principal, index=Index.DOCUMENTS, query=_LIVING, fields=_DOCUMENT_FIELDS)
        async with aclosing(scan_pages(self.gate, wanted, page_rows=BATCH)) as pages:
            async for rows in pages:
                report.documents += len(rows)
                await self._documents(principal, rows, report)

    async def _documents(self, principal: Principal, rows: Sequence[StoredRow], report: PassReport) -> None:
        found = [await self._texts(row.source, report) for row in rows]
        texts = [one for one in found if one is not None]
        stored = await self._stored(principal, [one.word.doc_id for one in texts])
        missing = [
            one for one in texts if not self._stands(one, stored.get(one.word.doc_id, [])) and one.texts
        ]
        if not missing:
            return
        keys = [key for one in missing for key, _ in keyed_texts(one)]
        model_id = self.model.embedder.model_id
        known = await stored_vectors(self.view, keys, model_id)
        computed, refused = await self.model.embed(missing, known)
        out = {one.record.place: one.error for one in refused}
        report.refused += [str(error) for error in out.values()]
        vectors = known | computed
        embedded = [vectors_of(one.word, vectors) for one in missing if one.word.record.place not in out]
        report.refused += [str(one.error) for one in await write_chunks(self.view, embedded, model_id)]
        words = [one.word for one in embedded]
        if words:
            await remove_outdated(self.view, words, model_id)
            await remove_superseded(self.view, words)
        report.embedded += len(embedded)
        report.chunks += sum(len(one.vectors) for one in embedded)

    async def _texts(self, source: Mapping[str, Any], report: PassReport) -> Texts | None:
        word = _word(source, report.documents)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self.files, self._read, word)
        except PoisonRecord as error:
            report.unread.append(f"{word.event.path}: {error}")
            return None
        if found is None:
            report.unread.append(f"{word.event.path}: not as it was indexed")
        return found

    def _read(self, word: Word) -> Texts | None:
        event = word.event
        text = read_text(self.vaults, event.document, event.content_hash, self.settings.document_max_bytes)
        if text is None:
            return None
        return texts_of(cut_anew(word, text, self.model.embedder, self.settings, self.chunker), text)

    async def _stored(self, principal: Principal, doc_ids: Sequence[str]) -> dict[str, list[Found]]:
        grouped: dict[str, list[Found]] = {}
        for rows in await find_all(
            self.view, wanted_chunks(principal, {"terms": {"doc_id": list(doc_ids)}}, _CHUNK_FIELDS)
        ):
            for row in rows:
                grouped.setdefault(row.source["doc_id"], []).append(row)
        return grouped

    def _stands(self, texts: Texts, rows: Sequence[Found]) -> bool:
        """A newer version is the second group's affair."""
        event, model_id = texts.word.event, self.model.embedder.model_id
        if any(row.source["version"] > event.version for row in rows):
            return True
        due = {(c.ordinal, c.chunk_hash, model_id, self.chunker, event.version) for c in event.chunks}
        return due == {tuple(row.source[name] for name in _CHUNK_FIELDS[1:]) for row in rows}


async def lacking(gate: Gate, old: Gate, new: Gate, tenants: Sequence[Principal]) -> list[str]:
    """`tenant: path` of documents that the old generation has as they are now, and the new one hasn't."""
    await gate.refresh(Index.DOCUMENTS)
    for view in (old, new):
        await view.refresh(Index.CHUNKS)
    found: list[str] = []
    for principal in tenants:
        wanted = Wanted(
            principal=principal, index=Index.DOCUMENTS, query=_LIVING, fields=("doc_id", "path", "version")
        )
        async with aclosing(scan_pages(gate, wanted, page_rows=DOCUMENTS_MAX)) as pages:
            async for rows in pages:
                ids = [row.source["doc_id"] for row in rows]
                before, after = await _versions(old, principal, ids), await _versions(new, principal, ids)
                found += [
                    f"{principal.tenant_id}: {row.source['path']}"
                    for row in rows
                    if before.get(row.source["doc_id"]) == row.source["version"]
                    and after.get(row.source["doc_id"], -1) < row.source["version"]
                ]
    return found


async def _versions(view: Gate, principal: Principal, doc_ids: Sequence[str]) -> dict[str, int]:
    """Of the leads: every document with chunks has one."""
    query = {"bool": {"filter": [{"terms": {"doc_id": list(doc_ids)}}, {"term": {"ordinal": 0}}]}}
    [rows] = await find_all(view, wanted_chunks(principal, query, ("doc_id", "version")))
    return {row.source["doc_id"]: row.source["version"] for row in rows}


def wanted_chunks(principal: Principal, query: dict[str, Any], fields: tuple[str, ...]) -> list[Wanted]:
    return [Wanted(principal=principal, index=Index.CHUNKS, query=query, fields=fields)]


def _word(source: Mapping[str, Any], number: int) -> Word:
    """The document as ingest would tell of it; its chunks are cut later."""
    key = _key(source)
    record = Record(topic="", partition=id(source), offset=number, key=None, value=None, timestamp=0.0)
    facts = {name: source[name] for name in FACT_FIELDS if name in source}
    event = DocumentChanged(
        event_id=source["event_id"],
        tenant_id=source["tenant_id"],
        agent_id=source["agent_id"],
        scope=Scope(source["scope"]),
        team_id=source["team_id"],
        occurred_at=now_iso(),
        version=source["version"],
        path=source["path"],
        kind="upserted",
        doc_id=key.doc_id,
        content_hash=source["content_hash"],
        chunker_version=source["chunker_version"],
        facts=msgspec.convert(facts, DocumentFacts),
    )
    return Word(record=record, event=event)


def _key(source: Mapping[str, Any]) -> DocumentKey:
    team = source["team_id"]
    return Namespace(
        tenant_id=TenantId(source["tenant_id"]),
        agent_id=AgentId(source["agent_id"]),
        scope=Scope(source["scope"]),
        team_id=None if team is None else TeamId(team),
    ).document(source["path"])
