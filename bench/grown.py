"""Many more notes in an index, quickly: texts and files of their own, rows after those of a planned note.

To plan a note takes 5 ms, ten times what it takes to invent one. So the rows of a new note are those of a planned
one of the same subject, with its own text, title, tags, places of chunks, vectors, links and mentions.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from bench.filled import chunk_texts, note_writes, planned_notes
from bench.notes import TOPICS, path, topic_of, write_vault
from bench.woven import store, weave
from indexers.domain import links, title_names
from indexers.domain.hashing import content_hash
from indexers.domain.identity import Namespace
from indexers.opensearch.gate import Gate
from indexers.planning import PlannedDocument
from indexers.ports import Embedder

NOTES_AT_ONCE = 200
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_TAGS = re.compile(r"^tags: \[(.+), (.+)\]$", re.MULTILINE)


async def grow_index(
    gate: Gate, vault: Path, start: int, count: int, namespace: Namespace, embedder: Embedder
) -> int:
    """Notes `start` to `count` with their links and mentions; the number of chunks. The caller refreshes."""
    write_vault(vault, count, start=start)
    planned = list(planned_notes(vault, TOPICS, namespace, embedder))
    centres = embedder.embed_passages([chunk_texts(note)[0] for note in planned])
    rnd = np.random.default_rng(start)
    chunks = 0
    for first in range(start, count, NOTES_AT_ONCE):
        numbers = range(first, min(first + NOTES_AT_ONCE, count))
        writes = [
            write
            for number in numbers
            for write in note_writes(
                _after(planned[topic_of(number)], vault, number, namespace),
                namespace,
                embedder,
                centres[topic_of(number)],
                rnd,
            )
        ]
        await store(gate, writes)
        await weave(gate, numbers, count, namespace)
        chunks += len(writes) - len(numbers)
    return chunks


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
