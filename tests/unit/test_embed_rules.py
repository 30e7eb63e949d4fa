"""What embed asks the model for, and which rows it takes for outdated: pure."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import pytest

from indexers.domain.chunking import chunk_hash
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from indexers.errors import PoisonRecord
from indexers.ports import Vectors
from streams.agents.documents import Word, decode_words, newest_of_each
from streams.agents.embed.model import Model, missing_calls
from streams.agents.embed.texts import Texts, texts_of
from streams.agents.embed.write import outdated_query, vector_json, vectors_of
from streams.batch import Record
from streams.events import ChunkSpan, DocumentChanged, decode, encode

HOME = Namespace(tenant_id=TenantId("acme"), agent_id=AgentId("ada"), scope=Scope.SHARED)


def word(version: int, *texts: str, path: str = "a.md", **more: Any) -> Word:
    text = "\n".join(texts)
    spans: list[ChunkSpan] = []
    at = 0
    for ordinal, part in enumerate(texts):
        spans.append(
            ChunkSpan(
                ordinal=ordinal, start=at, end=at + len(part), heading_path=[], chunk_hash=chunk_hash(part)
            )
        )
        at += len(part) + 1
    values: dict[str, Any] = {
        "event_id": f"e{version}",
        "tenant_id": "acme",
        "agent_id": "ada",
        "scope": Scope.SHARED,
        "occurred_at": "2026-11-30T00:00:00Z",
        "version": version,
        "path": path,
        "kind": "upserted",
        "doc_id": HOME.document(path).doc_id,
        "content_hash": "sha256:0",
        "chunker_version": "c",
        "chunks": spans,
        "text": text,
    }
    event = DocumentChanged(**(values | more))
    return Word(record=record(event), event=event)


def record(event: DocumentChanged) -> Record:
    return Record(
        topic="t.documents", partition=0, offset=event.version, key=None, value=encode(event), timestamp=0.0
    )


def texts(of: Word) -> Texts:
    found = texts_of(of, of.event.text or "")
    assert found is not None
    return found


def test_the_newest_word_of_each_document_counts() -> None:
    words = [word(1, "a"), word(3, "c"), word(2, "b"), word(1, "x", path="b.md")]
    assert [(w.event.path, w.event.version) for w in newest_of_each(words)] == [("a.md", 3), ("b.md", 1)]


def test_words_that_contradict_themselves_are_poison() -> None:
    odd = [
        word(1, "a", doc_id=HOME.document("b.md").doc_id),
        word(2, "a", kind="moved"),
        word(3, "a", chunks=[word(1, "a", "b").event.chunks[1]]),
    ]
    good = word(4, "a")
    words, poisoned = decode_words([record(w.event) for w in [*odd, good]])
    assert ([w.event.version for w in words], [p.error.error_class for p in poisoned]) == (
        [4],
        ["invalid_fields"] * 3,
    )


def test_an_event_of_before_there_were_facts_is_read() -> None:
    written = msgspec.json.decode(encode(word(1, "a").event))
    del written["facts"]
    assert decode(msgspec.json.encode(written), DocumentChanged) == word(1, "a").event
    odd = written | {"facts": {"health": "good"}}
    with pytest.raises(PoisonRecord) as refused:
        decode(msgspec.json.encode(odd), DocumentChanged)
    assert refused.value.error_class == "invalid_fields"


def test_a_text_that_is_not_the_chunked_one_is_noticed() -> None:
    assert texts_of(word(1, "alpha", "bravo"), "alpha\nbravo") is not None
    assert texts_of(word(1, "alpha", "bravo"), "alpha\nbravX") is None


def test_documents_stay_apart_and_each_text_is_computed_once() -> None:
    documents = [texts(word(1, "long text", "b", "b")), texts(word(1, "b", "cc", "known", path="b.md"))]
    known = {(TenantId("acme"), chunk_hash("known")): np.zeros(3, np.float32)}
    apart = list(missing_calls(documents, known, mixes_documents=False))
    assert [call.texts for call in apart] == [("b", "long text"), ("cc",)]
    mixed = list(missing_calls(documents, known, mixes_documents=True))
    assert [call.texts for call in mixed] == [("b", "cc", "long text")]
    cut = list(missing_calls(documents, known, mixes_documents=True, texts_per_call=2))
    assert [call.texts for call in cut] == [("b", "cc"), ("long text",)]


def test_outdated_rows_are_never_newer_ones() -> None:
    doc_id = HOME.document("a.md").doc_id
    upsert, deletion = word(5, "a", "b"), word(6, kind="deleted")
    present = [{"term": {"version": 5}}, {"term": {"model_id": "m"}}, {"range": {"ordinal": {"lt": 2}}}]
    assert outdated_query([upsert, deletion], "m") == {
        "bool": {
            "should": [
                {
                    "bool": {
                        "filter": [{"term": {"doc_id": doc_id}}, {"range": {"version": {"lte": 5}}}],
                        "must_not": [{"bool": {"filter": present}}],
                    }
                },
                {"bool": {"filter": [{"term": {"doc_id": doc_id}}, {"range": {"version": {"lte": 6}}}]}},
            ],
            "minimum_should_match": 1,
        }
    }


def test_a_vector_survives_json() -> None:
    vector = np.random.default_rng(7).normal(size=384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    assert np.allclose(np.asarray(vector_json(vector), np.float32), vector, atol=1e-7)
    assert vector_json(vector) == [round(float(value), 7) for value in vector]


class PickyModel:
    """Refuses any call that holds the text `bad`, as a model refuses what is over its length."""

    model_id = pair_id = tokenizer_id = "picky"
    dimension, max_tokens, cosine_floor = 1, 512, 0.0

    def __init__(self, *, mixes_documents: bool) -> None:
        self.mixes_documents = mixes_documents

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if "bad" in texts:
            msg = "text is too long"
            raise ValueError(msg)
        return np.asarray([[len(text)] for text in texts], np.float32)

    def embed_query(self, text: str) -> Vectors:
        return np.asarray([len(text)], np.float32)


@pytest.mark.parametrize("mixes", [False, True])
async def test_a_refused_document_takes_no_text_of_another_with_it(
    *,
    mixes: bool,
) -> None:
    documents = [
        texts(word(1, "shared", "bad")),
        texts(word(2, "shared", "own", path="b.md")),
        texts(word(3, "shared", "other", "bad", path="c.md")),
        texts(word(4, "other", "shared", path="d.md")),
    ]
    with ThreadPoolExecutor(1) as executor:
        model = Model(embedder=PickyModel(mixes_documents=mixes), executor=executor, beat=lambda: None)
        vectors, refused = await model.embed(documents, {})
    assert sorted(p.record.offset for p in refused) == [1, 3]
    good = [vectors_of(document.word, vectors).vectors for document in (documents[1], documents[3])]
    assert [[float(vector[0]) for vector in found] for found in good] == [[6.0, 3.0], [5.0, 6.0]]
