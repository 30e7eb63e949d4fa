"""Names, mappings and the shapes of writes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from indexers.domain.identity import Principal, TenantId
from indexers.errors import ConfigurationError
from indexers.opensearch.calls import ROW_TYPES, BulkRejected, BulkRetried, BulkSent, RowWrite, StoreFact
from indexers.opensearch.metrics import StoreMetrics
from indexers.opensearch.names import MAPPING_VERSION, IndexNames, row_id_of, stored_id
from indexers.opensearch.rows import FACT_FIELDS, ChunkRow, DocumentFacts, DocumentRow, Index, facts_of
from indexers.opensearch.templates import VectorSpace, index_body, template_body
from indexers.settings import OpenSearchSettings
from tests.store import chunk_row, document_row, gate_row

SPACE = VectorSpace(pair_id="e5", dimension=384, cosine_floor=0.7)
SETTINGS = OpenSearchSettings(shards=3, replicas=2)
ACME = Principal.pipeline(TenantId("acme"))


def test_names_of_shared_and_dedicated_indices() -> None:
    names = IndexNames(prefix="hopline", dedicated_tenants={"umbra": "big"})
    acme, umbra = TenantId("acme"), TenantId("umbra")
    assert [
        names.alias(Index.DOCUMENTS, acme),
        names.index(Index.DOCUMENTS, acme),
        names.alias(Index.DOCUMENTS, umbra),
        names.index(Index.DOCUMENTS, umbra),
    ] == ["hopline-documents", "hopline-documents-v1", "hopline-documents-big", "hopline-documents-big-v1"]
    assert names.suffixes == (None, "big")


@pytest.mark.parametrize("prefix", ["", "Big", "a/b", "a b", "*", "-a", "a" * 101, "a,b"])
def test_a_prefix_that_names_no_index_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="part of an index name"):
        IndexNames(prefix=prefix)


@pytest.mark.parametrize("tenant", ["acme", "회사" * 64])
def test_stored_ids_hold_the_tenant_and_fit(tenant: str) -> None:
    row_id = "6d9f6a53-0c1c-5c0e-8a39-0e8f6e1c3a11"
    stored = stored_id(TenantId(tenant), row_id)
    assert len(stored.encode()) <= 512
    assert row_id_of(stored) == row_id
    assert stored != stored_id(TenantId(tenant + "2"), row_id)


@pytest.mark.parametrize("index", list(Index))
def test_the_mapping_has_exactly_the_fields_of_the_row(index: Index) -> None:
    mappings = index_body(index, SETTINGS, SPACE)["mappings"]
    assert set(mappings["properties"]) == set(ROW_TYPES[index].__struct_fields__)
    assert (mappings["dynamic"], mappings["_routing"]) == ("strict", {"required": True})


def test_only_body_is_kept_out_of_the_stored_row() -> None:
    excluded = {index: index_body(index, SETTINGS, SPACE)["mappings"].get("_source") for index in Index}
    assert excluded == dict.fromkeys(Index) | {Index.DOCUMENTS: {"excludes": ["body", "name_text"]}}


def test_the_vector_engine_is_always_named() -> None:
    chunks = index_body(Index.CHUNKS, SETTINGS, SPACE)["mappings"]
    assert chunks["properties"]["vector"] == {
        "type": "knn_vector",
        "dimension": 384,
        "method": {
            "name": "hnsw",
            "engine": "lucene",
            "space_type": "innerproduct",
            "parameters": {"m": 16, "ef_construction": 100},
        },
    }
    assert chunks["_meta"] == {
        "schema_version": MAPPING_VERSION,
        "pair_id": "e5",
        "dimension": 384,
        "cosine_floor": 0.7,
    }


def test_every_keyword_has_a_safe_length() -> None:
    def unsafe(name: str, field: dict[str, Any]) -> list[str]:
        inner = [
            hit for key, value in field.get("fields", {}).items() for hit in unsafe(f"{name}.{key}", value)
        ]
        searchable = field.get("index", True) or field.get("doc_values", True)
        too_long = field["type"] == "keyword" and searchable and field.get("ignore_above", 10**9) * 4 > 32_766
        return [name, *inner] if too_long else inner

    for index in Index:
        fields = index_body(index, SETTINGS, SPACE)["mappings"]["properties"]
        assert [hit for name, field in fields.items() for hit in unsafe(name, field)] == []


def test_the_template_carries_what_all_indices_have_in_common() -> None:
    keyword = {"type": "keyword", "ignore_above": 8_191}
    assert template_body(["hopline-gate*", "hopline-links*"], SETTINGS) == {
        "index_patterns": ["hopline-gate*", "hopline-links*"],
        "priority": 201,
        "template": {
            "settings": {
                "index": {
                    "number_of_shards": 3,
                    "number_of_replicas": 2,
                    "refresh_interval": "1s",
                    "gc_deletes": "10m",
                }
            },
            "mappings": {
                "dynamic": "strict",
                "_routing": {"required": True},
                "properties": dict.fromkeys(("tenant_id", "agent_id", "team_id", "scope"), keyword),
            },
        },
    }


def test_an_index_carries_the_settings() -> None:
    assert index_body(Index.GATE, SETTINGS, SPACE)["settings"] == {
        "index": {
            "number_of_shards": 3,
            "number_of_replicas": 2,
            "refresh_interval": "5s",
            "gc_deletes": "10m",
        }
    }


@pytest.mark.parametrize(
    "values",
    [
        {"action": "index", "version": 1},
        {"action": "index", "row": gate_row()},
        {"action": "create", "row": gate_row(), "version": 1},
        {"action": "delete", "row": gate_row(), "version": 1},
        {"action": "delete"},
        {"action": "replace_if", "row": gate_row()},
        {"action": "replace_if", "row": gate_row(), "seq_no": 1},
        {"action": "index", "row": gate_row(), "version": 1, "seq_no": 1, "primary_term": 1},
    ],
)
def test_a_write_that_contradicts_itself_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=values["action"]):
        RowWrite(principal=ACME, index=Index.GATE, row_id="r", **values)


def test_what_the_store_says_of_writes_is_counted() -> None:
    registry = CollectorRegistry()
    metrics = StoreMetrics(registry)
    facts: list[StoreFact] = [
        BulkSent(rows=5, bytes=900, seconds=0.02),
        BulkRetried(rows=2, reason="es_rejected_execution_exception"),
        BulkSent(rows=2, bytes=300, seconds=0.01),
        BulkRejected(rows=1),
    ]
    for fact in facts:
        metrics.observe(fact)
    rows = {
        outcome: registry.get_sample_value("hopline_store_rows_total", {"outcome": outcome})
        for outcome in ("sent", "retried", "rejected")
    }
    assert rows == {"sent": 7.0, "retried": 2.0, "rejected": 1.0}
    assert registry.get_sample_value("hopline_store_sent_bytes_total") == 1_200.0
    assert registry.get_sample_value("hopline_store_bulk_seconds_count") == 2.0


def test_what_chunks_repeat_of_their_document_is_mapped_alike_in_both() -> None:
    documents, chunks = (
        index_body(index, SETTINGS, SPACE)["mappings"]["properties"]
        for index in (Index.DOCUMENTS, Index.CHUNKS)
    )
    assert {name: chunks[name] for name in FACT_FIELDS} == {name: documents[name] for name in FACT_FIELDS}
    row = document_row(
        health=0.6, session="s", position=2, turn="s#2", superseded_by="x", expires_at="2032-01-01"
    )
    facts = facts_of(row)
    assert facts == DocumentFacts(
        doc_type="note",
        source="sync",
        health=0.6,
        session="s",
        position=2,
        turn="s#2",
        superseded_by="x",
        expires_at="2032-01-01",
    )
    repeated = chunk_row(**msgspec.structs.asdict(facts))
    assert {name: getattr(repeated, name) for name in FACT_FIELDS} == msgspec.structs.asdict(facts)
    assert set(FACT_FIELDS) <= set(DocumentRow.__struct_fields__) & set(ChunkRow.__struct_fields__)
