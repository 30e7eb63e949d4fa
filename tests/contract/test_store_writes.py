"""Outcomes of writes: versions, conflicts, rejected rows, and what is sent again (C10)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from indexers.domain.identity import Principal, TenantId
from indexers.errors import Transient
from indexers.opensearch.gate import (
    BulkRejected,
    BulkRetried,
    Gate,
    GatedSearch,
    RowRef,
    RowWrite,
    StoredRow,
    StoreFact,
    WriteResult,
)
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import DocumentRow, Index, OwnedRow
from indexers.settings import OpenSearchSettings
from tests.conftest import Stack
from tests.contract.fault_proxy import FaultProxy
from tests.entity_rows import row_of
from tests.store import chunk_row, document_row, gate_row, link_row, namespace, opened_gate, principal

pytestmark = pytest.mark.engines

ADA = principal()
ACME = Principal.pipeline(TenantId("acme"))


def put(row_id: str, row: OwnedRow, *, index: Index = Index.DOCUMENTS, version: int = 1) -> RowWrite:
    return RowWrite(principal=ACME, index=index, row_id=row_id, action="index", row=row, version=version)


def statuses(results: list[WriteResult]) -> list[str]:
    return [result.status for result in results]


async def titles(gate: Gate, word: str) -> list[str]:
    await gate.refresh(Index.DOCUMENTS)
    body = {"query": {"match": {"body": word}}, "_source": ["title"]}
    pages = await gate.search_many([GatedSearch(principal=ADA, index=Index.DOCUMENTS, body=body)])
    return sorted(hit.source["title"] for hit in pages[0].hits)


@pytest.fixture
async def gate(stack: Stack, prefix: str) -> AsyncIterator[Gate]:
    async with opened_gate(stack.opensearch_url, prefix) as opened:
        yield opened


@contextlib.asynccontextmanager
async def faulty_gate(
    stack: Stack, prefix: str, retry: RetryPolicy, facts: list[StoreFact] | None = None
) -> AsyncIterator[tuple[Gate, FaultProxy]]:
    settings = OpenSearchSettings(timeout_seconds=2)
    async with FaultProxy(stack.opensearch_url) as proxy:
        observe = (lambda _fact: None) if facts is None else facts.append
        async with opened_gate(proxy.url, prefix, retry=retry, settings=settings, observe=observe) as opened:
            proxy.seen.clear()
            yield opened, proxy
            proxy.heal()


def quick(attempts: int = 6) -> RetryPolicy:
    return RetryPolicy(attempts=attempts, base_seconds=0.01, cap_seconds=0.05)


async def test_a_row_of_every_index_comes_back_as_written(gate: Gate) -> None:
    rows: dict[Index, OwnedRow] = {index: row_of(index) for index in Index} | {
        Index.DOCUMENTS: document_row(title="Copper ledger", tags=["audit"]),
        Index.CHUNKS: chunk_row(vector=[0.1, 0.2, 0.9746794]),
    }
    results = await gate.write([put("r", row, index=index, version=7) for index, row in rows.items()])
    assert statuses(results) == ["applied"] * len(Index)
    for index, row in rows.items():
        (stored,) = await gate.get_many(index, [RowRef(principal=ADA, row_id="r")])
        expected = msgspec.to_builtins(row)
        for left_out in {Index.DOCUMENTS: ("body", "name_text"), Index.CHUNKS: ("vector", "own_vector")}.get(
            index, ()
        ):
            del expected[left_out]
        assert stored == StoredRow(row_id="r", source=expected, seq_no=0, primary_term=1, version=7)


async def test_body_is_found_but_not_stored(gate: Gate) -> None:
    await gate.write([put("r", document_row(body="the zephyrine pump"))])
    assert await titles(gate, "zephyrine") == ["A"]
    (stored,) = await gate.get_many(Index.DOCUMENTS, [RowRef(principal=ADA, row_id="r")])
    assert stored is not None
    assert "body" not in stored.source


@pytest.mark.parametrize("refreshed", [False, True])
async def test_vectors_are_read_only_when_asked_for(gate: Gate, *, refreshed: bool) -> None:
    await gate.write([put("r", chunk_row(vector=[0.1, 0.2, 0.9746794]), index=Index.CHUNKS)])
    if refreshed:
        await gate.refresh()
    refs = [RowRef(principal=ADA, row_id="r")]
    (asked,) = await gate.get_many(Index.CHUNKS, refs, fields=["vector", "ordinal"])
    assert asked is not None
    assert asked.source == {"vector": [0.1, 0.2, 0.9746794], "ordinal": 0}


async def test_vectors_are_found_by_hash_and_model(gate: Gate) -> None:
    await gate.write([put("r", chunk_row(vector=[0.1, 0.2, 0.9746794]), index=Index.CHUNKS)])
    await gate.refresh()
    query = {
        "bool": {"filter": [{"terms": {"chunk_hash": ["sha256:11"]}}, {"term": {"model_id": "test-int8"}}]}
    }
    rows = [row async for row in gate.scan(ADA, Index.CHUNKS, query, fields=["vector"])]
    assert [row.source for row in rows] == [{"vector": [0.1, 0.2, 0.9746794]}]
    search = {"query": query, "_source": ["vector"]}
    (page,) = await gate.search_many([GatedSearch(principal=ADA, index=Index.CHUNKS, body=search)])
    assert [hit.source for hit in page.hits] == [{"vector": [0.1, 0.2, 0.9746794]}]


async def test_newer_wins_and_equal_is_applied_again(gate: Gate) -> None:
    row = gate_row()
    outcomes = [
        (await gate.write([put("r", row, index=Index.GATE, version=version)]))[0].status
        for version in (5, 4, 5, 6)
    ]
    assert outcomes == ["applied", "stale", "applied", "applied"]


async def test_a_tombstone_outlives_late_writes(gate: Gate) -> None:
    tombstone = document_row(deleted=True, version=9, tombstone_until="2027-01-14T00:00:00Z")
    results = [
        await gate.write([put("r", document_row(body="alive"), version=8)]),
        await gate.write([put("r", tombstone, version=9)]),
        await gate.write([put("r", document_row(body="late"), version=8)]),
    ]
    assert [statuses(result) for result in results] == [["applied"], ["applied"], ["stale"]]
    assert await titles(gate, "late") == []
    (stored,) = await gate.get_many(Index.DOCUMENTS, [RowRef(principal=ADA, row_id="r")], fields=["deleted"])
    assert stored is not None
    assert (stored.source, stored.version) == ({"deleted": True}, 9)


async def test_deletes_compare_versions_and_missing_rows_are_a_success(gate: Gate) -> None:
    def delete(row_id: str, version: int) -> RowWrite:
        return RowWrite(principal=ACME, index=Index.GATE, row_id=row_id, action="delete", version=version)

    await gate.write([put("r", gate_row(), index=Index.GATE, version=5)])
    assert statuses(await gate.write([delete("r", 4), delete("r", 5), delete("never", 5)])) == [
        "stale",
        "applied",
        "applied",
    ]
    # The deleted row's version is remembered for a while.
    assert statuses(await gate.write([put("r", gate_row(), index=Index.GATE, version=4)])) == ["stale"]


async def test_replace_if_loses_to_another_writer(gate: Gate) -> None:
    def replace(seq_no: int, to: str) -> RowWrite:
        return RowWrite(
            principal=ACME,
            index=Index.LINKS,
            row_id="l",
            action="replace_if",
            row=link_row(to_doc_id=to, resolved=True),
            seq_no=seq_no,
            primary_term=1,
        )

    create = RowWrite(principal=ACME, index=Index.LINKS, row_id="l", action="create", row=link_row())
    assert statuses(await gate.write([create])) == ["applied"]
    assert statuses(await gate.write([create])) == ["conflict"]
    assert statuses(await gate.write([replace(0, "x"), replace(0, "y")])) == ["applied", "conflict"]
    (stored,) = await gate.get_many(Index.LINKS, [RowRef(principal=ADA, row_id="l")])
    assert stored is not None
    assert stored.source["to_doc_id"] == "x"
    assert statuses(await gate.write([replace(stored.seq_no, "y")])) == ["applied"]


async def test_delete_if_removes_only_the_row_that_was_read(gate: Gate) -> None:
    def delete(seq_no: int) -> RowWrite:
        return RowWrite(
            principal=ACME, index=Index.LINKS, row_id="l", action="delete_if", seq_no=seq_no, primary_term=1
        )

    create = RowWrite(principal=ACME, index=Index.LINKS, row_id="l", action="create", row=link_row())
    replace = RowWrite(
        principal=ACME,
        index=Index.LINKS,
        row_id="l",
        action="replace_if",
        row=link_row(to_doc_id="x", resolved=True),
        seq_no=0,
        primary_term=1,
    )
    assert statuses(await gate.write([create, replace])) == ["applied", "applied"]
    assert statuses(await gate.write([delete(0), delete(1)])) == ["conflict", "applied"]
    assert await gate.get_many(Index.LINKS, [RowRef(principal=ADA, row_id="l")]) == [None]
    assert statuses(await gate.write([delete(1)])) == ["conflict"]
    assert statuses(await gate.write([create])) == ["applied"]


async def test_long_paths_targets_and_words_cost_no_document(gate: Gate) -> None:
    long = "경로/" * 1_000 + "a" * 9_000
    names = dict.fromkeys(["path", "vault_path", "path_key", "name_key", "title"], long)
    lists = {"tags": [long], "alias_keys": [long], "aliases": [long]}
    dates = {"created_at": "when pigs fly", "expires_at": "2026-13-45"}
    values: dict[str, Any] = {**names, **lists, **dates}
    document = document_row(**values, body="b" * 40_000 + " -." * 20_000)
    link = link_row(target=long * 3, target_key=long * 3, target_name_key=long, from_path=long)
    results = await gate.write([put("d", document), put("l", link, index=Index.LINKS)])
    assert results == [
        WriteResult(row_id="d", status="applied", seq_no=0, primary_term=1),
        WriteResult(row_id="l", status="applied", seq_no=0, primary_term=1),
    ]
    found = await gate.get_many(Index.DOCUMENTS, [RowRef(principal=ADA, row_id="d")], fields=["path"])
    assert [row and row.source for row in found] == [{"path": long}]


async def test_a_path_of_three_hundred_bytes_is_found_exactly(gate: Gate) -> None:
    path = "긴-폴더-이름/" * 20 + "노트.md"
    await gate.write([put("d", document_row(path=path, path_key=path))])
    await gate.refresh()
    assert len(path.encode()) > 255
    assert await gate.count(ADA, Index.DOCUMENTS, {"term": {"path_key": path}}) == 1


async def test_one_bad_row_costs_no_neighbour(gate: Gate) -> None:
    bad_vector = chunk_row(vector=[1.0, 0.0])
    surrogate = document_row(title="broken \ud800 text")
    results = await gate.write(
        [
            put("a", document_row()),
            put("b", surrogate),
            put("c", bad_vector, index=Index.CHUNKS),
            put("d", chunk_row(), index=Index.CHUNKS),
        ]
    )
    assert statuses(results) == ["applied", "rejected", "rejected", "applied"]
    assert "JSON" in (results[1].reason or "")
    assert "dimension" in (results[2].reason or "").lower()


async def test_unknown_fields_are_refused(gate: Gate) -> None:
    class Extended(DocumentRow, frozen=True, kw_only=True):
        unheard_of: str = "x"

    row = Extended(**{name: getattr(document_row(), name) for name in DocumentRow.__struct_fields__})
    with pytest.raises(ValueError, match="Extended is no row of documents"):
        await gate.write([put("r", row)])


async def test_batches_keep_rows_bytes_and_order(stack: Stack, prefix: str) -> None:
    settings = OpenSearchSettings(bulk_max_rows=3, bulk_max_bytes=100_000)
    async with FaultProxy(stack.opensearch_url) as proxy:
        async with opened_gate(proxy.url, prefix, settings=settings) as gate:
            rows = [put(f"r{n}", document_row(body="x" * 60_000 if n in (4, 5) else "y")) for n in range(8)]
            results = await gate.write(rows)
        assert [result.row_id for result in results] == [f"r{n}" for n in range(8)]
        assert statuses(results) == ["applied"] * 8
        assert proxy.bulk_requests == [("r0", "r1", "r2"), ("r3", "r4"), ("r5", "r6", "r7")]


async def test_c10_only_the_busy_item_is_sent_again(stack: Stack, prefix: str) -> None:
    facts: list[StoreFact] = []
    async with faulty_gate(stack, prefix, quick(), facts) as (gate, proxy):
        proxy.fail_item("/two", status=429, times=2)
        proxy.fail_item("/three", status=400)
        results = await gate.write([put(row_id, document_row()) for row_id in ("one", "two", "three")])
        stored = await gate.get_many(
            Index.DOCUMENTS, [RowRef(principal=ADA, row_id=row_id) for row_id in ("one", "two", "three")]
        )
        assert proxy.bulk_requests == [("one", "two", "three"), ("two",), ("two",)]
    assert results == [
        WriteResult(row_id="one", status="applied", seq_no=0, primary_term=1),
        WriteResult(row_id="two", status="applied", seq_no=1, primary_term=1),
        WriteResult(
            row_id="three", status="rejected", reason="mapper_parsing_exception: injected by the test"
        ),
    ]
    assert [row and row.row_id for row in stored] == ["one", "two", None]
    reason = "rejected_execution_exception: injected by the test"
    assert [fact for fact in facts if isinstance(fact, BulkRetried | BulkRejected)] == [
        BulkRetried(rows=1, reason=reason),
        BulkRetried(rows=1, reason=reason),
        BulkRejected(rows=1),
    ]


async def test_an_item_that_stays_busy_is_no_success(stack: Stack, prefix: str) -> None:
    async with faulty_gate(stack, prefix, RetryPolicy.once()) as (gate, proxy):
        proxy.fail_item("/two", status=503)
        with pytest.raises(Transient, match="unavailable_shards_exception"):
            await gate.write([put("one", document_row()), put("two", document_row())])
        assert proxy.bulk_requests == [("one", "two")]


async def test_a_row_that_trips_a_bug_of_the_engine_is_rejected_in_the_end(stack: Stack, prefix: str) -> None:
    async with faulty_gate(stack, prefix, quick(attempts=50)) as (gate, proxy):
        proxy.fail_item("/two", status=500, error_type="illegal_state_exception")
        results = await gate.write([put("one", document_row()), put("two", document_row())])
        assert proxy.bulk_requests == [("one", "two"), *[("two",)] * 7]
    assert statuses(results) == ["applied", "rejected"]


@pytest.mark.parametrize("fault", ["503", "429", "drop", "drop_answer", "slow"])
async def test_whole_requests_are_repeated(stack: Stack, prefix: str, fault: str) -> None:
    async with faulty_gate(stack, prefix, quick()) as (gate, proxy):
        match fault:
            case "drop" | "drop_answer":
                proxy.drop("_bulk", times=2, after_answer=fault == "drop_answer")
            case "slow":
                proxy.delay("_mget", 3.0, times=1)
            case status:
                proxy.fail_requests("_bulk", status=int(status), times=2)
        results = await gate.write([put("one", document_row(), version=3)])
        assert statuses(results) == ["applied"]
        assert proxy.bulk_requests == [("one",)] * (1 if fault == "slow" else 3)
        found = await gate.get_many(Index.DOCUMENTS, [RowRef(principal=ADA, row_id="one")], fields=["title"])
        assert [row and row.version for row in found] == [3]


async def test_retry_after_is_honoured(stack: Stack, prefix: str) -> None:
    waits: list[float] = []
    policy = RetryPolicy(
        attempts=3,
        base_seconds=0.01,
        cap_seconds=0.05,
        on_wait=lambda _reason, seconds: waits.append(seconds),
    )
    async with faulty_gate(stack, prefix, policy) as (gate, proxy):
        waits.clear()
        proxy.fail_requests("_bulk", status=429, times=1, headers={"Retry-After": "1"})
        await gate.write([put("one", document_row())])
    assert waits == [1.0]


async def test_a_request_that_is_too_large_is_halved(stack: Stack, prefix: str) -> None:
    async with faulty_gate(stack, prefix, quick()) as (gate, proxy):
        proxy.fail_requests("_bulk", status=413, times=2)
        results = await gate.write([put(row_id, document_row()) for row_id in ("a", "b", "c")])
        assert proxy.bulk_requests == [("a", "b", "c"), ("a",), ("b", "c")]
    assert statuses(results) == ["rejected", "applied", "applied"]


async def test_missing_indices_hold_the_writer(stack: Stack, prefix: str) -> None:
    """A rebuild drops them for a moment: no row is rejected for it, and none is made by a guess."""
    async with opened_gate(stack.opensearch_url, prefix, retry=quick(2), ensure=False) as gate:
        with pytest.raises(Transient, match="no such index"):
            await gate.write([put("one", document_row())])
        with pytest.raises(Transient, match="no such index"):
            await gate.get_many(Index.DOCUMENTS, [RowRef(principal=ADA, row_id="one")])
        with pytest.raises(Transient, match="no such index"):
            await gate.count(ADA, Index.DOCUMENTS, {"match_all": {}})


async def test_a_row_of_another_owner_is_a_bug_of_the_caller(gate: Gate) -> None:
    for owner in (
        namespace("umbra"),
        namespace(agent="bob", scope="personal"),
        namespace(scope="team", team="ops"),
    ):
        write = RowWrite(
            principal=ADA,
            index=Index.DOCUMENTS,
            row_id="r",
            action="index",
            row=document_row(owner),
            version=1,
        )
        with pytest.raises(ValueError, match="may not write"):
            await gate.write([write])
