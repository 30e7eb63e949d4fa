"""The embed agent's batch: texts, known vectors, the model for the rest, chunk rows, nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

from indexers.domain.lead import Vector
from indexers.errors import PoisonRecord
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import EventRow, Index
from indexers.settings import IndexingSettings
from streams.agents.documents import Word, current_words, decode_words, newest_of_each, read_text
from streams.agents.embed.model import Model, keyed_texts
from streams.agents.embed.moves import carry_over
from streams.agents.embed.reuse import VectorKey, stored_vectors
from streams.agents.embed.texts import Texts, cut_anew, texts_of
from streams.agents.embed.write import (
    Embedded,
    remove_outdated,
    remove_superseded,
    vectors_of,
    write_chunks,
)
from streams.agents.progress import Progress, of_tracks, stages
from streams.agents.vaults import Vaults
from streams.batch import Poisoned, Record
from streams.context import AgentContext

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A batch with all its vectors. `outdated`: records of documents that have changed since."""

    embedded: list[Embedded]
    deletions: list[Word]
    poisoned: list[Poisoned]
    outdated: int
    words: list[Word] = field(default_factory=list)

    @property
    def done(self) -> list[Word]:
        """What is carried out, as far as the store takes it."""
        return [*(document.word for document in self.embedded), *self.deletions]

    def told_of(self, rejected: Sequence[Poisoned]) -> list[EventRow]:
        """Of followed events: done, or overtaken by another version; what was refused is told with its letter."""
        done = {word.record.place for word in self.done}
        refused = {one.record.place for one in (*self.poisoned, *rejected)}
        rows: list[EventRow] = []
        for word in self.words:
            if word.event.tracks and word.record.place not in refused:
                stage = "embedded" if word.record.place in done else "overtaken"
                rows += stages(of_tracks(word.event), stage)
        return rows


@dataclass(slots=True, kw_only=True)
class EmbedHandler:
    """`BatchHandler` of the embed agent. `files`: a thread for vault reads, apart from the model's."""

    gate: Gate
    vaults: Vaults
    model: Model
    settings: IndexingSettings
    context: AgentContext
    progress: Progress
    files: Executor
    #: Chunks of an event that another one cut are cut anew by this (`chunker_version`); None: taken as they come.
    chunker: str | None = None
    #: Vectors of the batch that may still be on its way into the store.
    _under_way: dict[VectorKey, Vector] = field(default_factory=dict)

    async def prepare(self, records: Sequence[Record]) -> Prepared:
        words, poisoned = decode_words(records)
        newest = newest_of_each(words)
        current = await self.context.hold("opensearch", lambda: current_words(self.gate, newest))
        deletions = [word for word in current if word.is_deletion]
        texts, unreadable = await self._texts([word for word in current if not word.is_deletion])
        vectors, refused = await self._vectors(texts)
        parked = {p.record.place for p in refused}
        embedded = [vectors_of(t.word, vectors) for t in texts if t.word.record.place not in parked]
        self._under_way = vectors
        return Prepared(
            embedded=embedded,
            deletions=deletions,
            poisoned=[*poisoned, *unreadable, *refused],
            outdated=len(words) - len(embedded) - len(deletions) - len(unreadable) - len(refused),
            words=words,
        )

    async def commit(self, prepared: Prepared) -> None:
        rejected = await self.context.hold("opensearch", lambda: self._store(prepared))
        await self.progress.tell(prepared.told_of(rejected))
        await self.context.park([*prepared.poisoned, *rejected])
        self.context.metrics.skipped.labels(reason="older").inc(prepared.outdated)
        refused = {one.record.place for one in rejected}
        done = [word for word in prepared.done if word.record.place not in refused]
        self.context.metrics.findable("vector", [word.event.occurred_at for word in done])
        self.context.note(
            documents=len(prepared.embedded), deleted=len(prepared.deletions), older=prepared.outdated
        )

    async def _texts(self, words: Sequence[Word]) -> tuple[list[Texts], list[Poisoned]]:
        texts: list[Texts] = []
        poisoned: list[Poisoned] = []
        for word in words:
            try:
                found = await self.context.hold("vault", lambda w=word: self._texts_of(w))  # type: ignore[misc]
            except PoisonRecord as error:
                poisoned.append(Poisoned(record=word.record, error=error))
            else:
                if found is not None:
                    texts.append(found)
        return texts, poisoned

    async def _texts_of(self, word: Word) -> Texts | None:
        """None: the file has changed since, its next event is on the way."""
        event = word.event
        loop = asyncio.get_running_loop()
        if event.text is not None or not event.chunks:
            text = event.text or ""
            found = texts_of(await loop.run_in_executor(self.files, self._cut, word, text), text)
            if found is None:
                raise PoisonRecord("hash_mismatch", f"{event.path}: a chunk's hash is not that of its text")
            return found
        read = await loop.run_in_executor(self.files, self._read, word)
        if read is None:
            return None
        return texts_of(await loop.run_in_executor(self.files, self._cut, word, read), read)

    def _cut(self, word: Word, text: str) -> Word:
        if self.chunker in (None, word.event.chunker_version) or not word.event.chunks:
            return word
        return cut_anew(word, text, self.model.embedder, self.settings, self.chunker or "")

    def _read(self, word: Word) -> str | None:
        event = word.event
        return read_text(self.vaults, event.document, event.content_hash, self.settings.document_max_bytes)

    async def _vectors(self, texts: Sequence[Texts]) -> tuple[dict[VectorKey, Vector], list[Poisoned]]:
        keys = [key for document in texts for key, _ in keyed_texts(document)]
        if not keys:
            return {}, []
        known = await self.context.hold("opensearch", lambda: self._known(keys))
        with self.context.metrics.stage_seconds.labels(stage="model").time():
            computed, refused = await self.model.embed(texts, known)
        embeddings = self.context.metrics.embeddings
        embeddings.labels(outcome="computed").inc(len(computed))
        embeddings.labels(outcome="reused").inc(len(keys) - len(computed))
        self.context.note(computed=len(computed), reused=len(keys) - len(computed))
        return known | computed, refused

    async def _known(self, keys: Sequence[VectorKey]) -> dict[VectorKey, Vector]:
        # No refresh while the model waits: what was stored before the batch under way is refreshed already
        # (`remove_outdated`). Another worker's rows of this second may be missed, and are computed once more.
        under_way = {key: self._under_way[key] for key in keys if key in self._under_way}
        missing = [key for key in keys if key not in under_way]
        return under_way | await stored_vectors(self.gate, missing, self.model.embedder.model_id)

    async def _store(self, prepared: Prepared) -> list[Poisoned]:
        model_id = self.model.embedder.model_id
        rejected = await write_chunks(self.gate, prepared.embedded, model_id)
        upserts = [document.word for document in prepared.embedded]
        if any(word.event.moved_to for word in prepared.deletions):
            await self.gate.refresh(Index.CHUNKS)
            await carry_over(self.gate, prepared.deletions, model_id)
        words = [*upserts, *prepared.deletions]
        if words:
            await remove_outdated(self.gate, words, model_id)
            await remove_superseded(self.gate, upserts)
        return rejected
