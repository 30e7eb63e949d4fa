"""What embed asks the model for, and which rows it takes for outdated: pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from indexers.domain.chunking import chunk_hash
from indexers.domain.identity import AgentId, Namespace, Scope, TenantId
from streams.agents.embed.decode import Texts, Word, decode_words, newest_of_each, texts_of
from streams.agents.embed.model import missing_calls
from streams.agents.embed.write import outdated_query, vector_json
from streams.batch import Record
from streams.events import ChunkSpan, DocumentChanged, encode

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
    return Record(topic="t.documents", partition=0, offset=0, key=None, value=encode(event), timestamp=0.0)


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
