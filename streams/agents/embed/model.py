"""Texts → vectors off the event loop, in calls of what may share one, with a sign of life after each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass

from indexers.domain.lead import Vector
from indexers.errors import PoisonRecord
from indexers.ports import Embedder
from streams.agents.embed.reuse import VectorKey
from streams.agents.embed.texts import Texts
from streams.batch import Poisoned

#: Seconds of CPU, so that a document of a thousand chunks doesn't look like a standstill.
TEXTS_PER_CALL = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Texts of one model call and the keys of their vectors."""

    keys: tuple[VectorKey, ...]
    texts: tuple[str, ...]
    #: Documents whose record is parked when the model refuses these texts.
    of: tuple[Texts, ...]


def missing_calls(
    documents: Sequence[Texts],
    known: Mapping[VectorKey, Vector],
    *,
    mixes_documents: bool,
    refused: AbstractSet[VectorKey] = frozenset(),
    texts_per_call: int = TEXTS_PER_CALL,
) -> Iterator[Call]:
    """Each text once, longest last; documents apart unless the vectors don't depend on the company.

    `refused` is asked for each document anew: what stood in another's refused call is asked for once more.
    """
    seen: set[VectorKey] = set(known)
    groups = [documents] if mixes_documents else [[document] for document in documents]
    for group in groups:
        pairs = (pair for document in group for pair in keyed_texts(document))
        missing = {key: text for key, text in pairs if key not in seen or key in refused}
        seen.update(missing)
        ordered = sorted(missing.items(), key=lambda item: (len(item[1]), item[0]))
        for start in range(0, len(ordered), texts_per_call):
            part = ordered[start : start + texts_per_call]
            yield Call(keys=tuple(k for k, _ in part), texts=tuple(t for _, t in part), of=tuple(group))


def keyed_texts(document: Texts) -> Iterator[tuple[VectorKey, str]]:
    for span, text in zip(document.word.event.chunks, document.texts, strict=True):
        yield (document.word.tenant_id, span.chunk_hash), text


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The embedder on a thread of its own; `beat` is called after each call."""

    embedder: Embedder
    executor: Executor
    beat: Callable[[], None]

    async def embed(
        self, documents: Sequence[Texts], known: Mapping[VectorKey, Vector]
    ) -> tuple[dict[VectorKey, Vector], list[Poisoned]]:
        """Vectors that `known` lacks, and the records whose texts the model refuses."""
        computed: dict[VectorKey, Vector] = {}
        refused: dict[tuple[str, int, int], Poisoned] = {}
        lacking: set[VectorKey] = set()
        mixes = self.embedder.mixes_documents
        for call in missing_calls(documents, known, mixes_documents=mixes, refused=lacking):
            lacking.update(call.keys)
            try:
                computed |= await self._call(call)
            except ValueError as exc:
                # Mixed with others, it isn't known whose text it was: each document once more, by itself.
                more, poisoned = await self._apart(call, {**known, **computed}, exc)
                computed |= more
                refused |= {p.record.place: p for p in poisoned}
            lacking.difference_update(computed)
            self.beat()
        return computed, list(refused.values())

    async def _call(self, call: Call) -> dict[VectorKey, Vector]:
        loop = asyncio.get_running_loop()
        vectors = await loop.run_in_executor(self.executor, self.embedder.embed_passages, call.texts)
        return dict(zip(call.keys, vectors, strict=True))

    async def _apart(
        self, call: Call, known: Mapping[VectorKey, Vector], exc: ValueError
    ) -> tuple[dict[VectorKey, Vector], list[Poisoned]]:
        if len(call.of) == 1:
            error = PoisonRecord("not_embeddable", f"{call.of[0].word.event.path}: {exc}")
            return {}, [Poisoned(record=call.of[0].word.record, error=error)]
        computed: dict[VectorKey, Vector] = {}
        poisoned: list[Poisoned] = []
        for document in call.of:
            more, refused = await self.embed([document], {**known, **computed})
            computed |= more
            poisoned += refused
        return computed, poisoned
