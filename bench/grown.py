"""A large index quickly: texts and files of their own, rows after those of a planned note.

To plan a note takes 4 ms, ten times what it takes to invent one. So one note of each subject is planned, and the rows
of every other one are those, with its own text, title, tags, terms, places of chunks, vectors, links and mentions. Rows
of the gate, which no search reads, are left out.

Two processes make and send rows. While they do, the indices are not refreshed and the translog is not synced; then the
settings are put back, and the last notes come in small parts, each refreshed, as notes do that somebody writes. What is
left to merge is merged by the engine on its own terms: nothing is merged by force.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from bench.cleaning import open_gate
from bench.filled import chunk_texts, note_writes, planned_notes
from bench.notes import path, topic_of, topics, write_vault
from bench.settling import Bulk, settle
from bench.woven import store, weave, write_names
from indexers.domain import links, title_names
from indexers.domain.hashing import content_hash
from indexers.domain.identity import Namespace
from indexers.domain.terms import content_terms
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.retry import RetryPolicy
from indexers.planning import PlannedDocument
from indexers.ports import Embedder, Vectors
from tests.pipeline import Pipeline

NOTES_AT_ONCE: Final = 1_000
PROCESSES: Final = 2
#: The last notes, at most a tenth of all, and how many are refreshed at once.
YOUNG, YOUNG_AT_ONCE = 1_000, 20
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_TAGS = re.compile(r"^tags: \[(.+), (.+)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """`count` notes in a vault, to be in the pipeline's indices."""

    pipeline: Pipeline
    vault: Path
    count: int
    namespace: Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """All that it takes to make the rows of a note: a planned one and a vector of each subject."""

    corpus: Corpus
    planned: Sequence[PlannedDocument]
    centres: Vectors
    model_id: str

    async def write(self, gate: Gate, numbers: Sequence[int]) -> int:
        """These notes' rows; the number of chunks. The same numbers give the same rows."""
        corpus, rnd = self.corpus, np.random.default_rng(numbers[0])
        writes = [write for number in numbers for write in self._writes(number, rnd)]
        await store(gate, writes)
        await weave(gate, numbers, corpus.count, corpus.namespace)
        return len(writes) - len(numbers)

    def _writes(self, number: int, rnd: np.random.Generator) -> Iterator[RowWrite]:
        corpus, topic = self.corpus, topic_of(number, self.corpus.count)
        note = _after(self.planned[topic], corpus.vault, number, corpus.namespace)
        return note_writes(note, corpus.namespace, self.model_id, self.centres[topic], rnd)


@dataclass(kw_only=True)
class _Process:
    """What a process of the pool was given."""

    rows: Rows | None = field(default=None)


_OWN = _Process()


def grow_index(corpus: Corpus, embedder: Embedder) -> int:
    """Fill fresh indices, to the end of merging; the number of chunks."""
    rows = _rows_of(corpus, embedder)
    count, young = corpus.count, min(YOUNG, corpus.count // 10)
    chunks = 0
    with Bulk(pipeline=corpus.pipeline):
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(PROCESSES, mp_context=spawn, initializer=_take, initargs=(rows,))
        with pool:
            chunks += sum(pool.map(_write_part, _parts(range(count - young), NOTES_AT_ONCE)))
    chunks += asyncio.run(_finish(rows, range(count - young, count)))
    settle(corpus.pipeline)
    return chunks


def _rows_of(corpus: Corpus, embedder: Embedder) -> Rows:
    write_vault(corpus.vault, corpus.count)
    found = planned_notes(corpus.vault, min(topics(corpus.count), corpus.count), corpus.namespace, embedder)
    planned = list(found)
    centres = embedder.embed_passages([chunk_texts(note)[0] for note in planned])
    # Half of what a process would be sent.
    lean = [replace(note, text="", said=(), links={}) for note in planned]
    return Rows(corpus=corpus, planned=lean, centres=centres, model_id=embedder.model_id)


def _take(rows: Rows) -> None:
    _OWN.rows = rows


def _write_part(numbers: range) -> int:
    rows = _OWN.rows
    assert rows is not None
    return asyncio.run(_write(rows, [numbers]))


async def _write(rows: Rows, parts: Iterable[Sequence[int]], *, refreshed: bool = False) -> int:
    gate = open_gate(rows.corpus.pipeline, RetryPolicy())
    try:
        chunks = 0
        for numbers in parts:
            chunks += await rows.write(gate, numbers)
            if refreshed:
                await gate.refresh()
        return chunks
    finally:
        await gate.close()


async def _finish(rows: Rows, young: range) -> int:
    """The names' rows, then the last notes."""
    corpus = rows.corpus
    gate = open_gate(corpus.pipeline, RetryPolicy())
    try:
        await write_names(gate, corpus.count, corpus.namespace, version=1)
        await gate.refresh()
    finally:
        await gate.close()
    return await _write(rows, _parts(young, YOUNG_AT_ONCE), refreshed=True)


def _parts(numbers: range, size: int) -> list[range]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def _after(planned: PlannedDocument, vault: Path, number: int, namespace: Namespace) -> PlannedDocument:
    raw = (vault / path(number)).read_bytes()
    text = raw.decode()
    title, tags = _TITLE.search(text), _TAGS.search(text)
    assert title is not None
    assert tags is not None
    keys = links.document_keys(path(number), [])
    row = msgspec.structs.replace(
        planned.row,
        doc_id=namespace.document(path(number)).doc_id,
        path=path(number),
        vault_path=path(number),
        path_key=keys.path_key,
        name_key=keys.name_key,
        title=title[1],
        tags=list(tags.groups()),
        terms=list(content_terms([text[title.end() :]], title=title[1])),
        name_keys=list(title_names.name_keys(title_names.names_of(title[1], []))),
        content_hash=content_hash(raw),
        size=len(raw),
        body=text[title.end() :],
        name_text=None,
    )
    starts = [found.start() + 1 for found in re.finditer("\n## ", text)]
    places = list(zip(starts, [*starts[1:], len(text)], strict=True))
    chunks = tuple(
        replace(chunk, ordinal=ordinal, start=start, end=end)
        for ordinal, (chunk, (start, end)) in enumerate(zip(planned.chunks, places, strict=False))
    )
    return replace(planned, row=row, text=text, chunks=chunks)
