"""Every method of the gate, every pair of owners: nothing of another shows (C13, the store's part)."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from indexers.domain.identity import Namespace, Principal, Scope, TenantId
from indexers.errors import RefusedRequest
from indexers.opensearch.connect import connect
from indexers.opensearch.gate import Gate, GatedSearch, RowRef, RowWrite
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index, OwnedRow
from indexers.settings import OpenSearchSettings
from tests.conftest import Stack
from tests.contract.fault_proxy import FaultProxy
from tests.entity_rows import row_of
from tests.store import chunk_row, document_row, gate_row, namespace, opened_gate, principal

pytestmark = pytest.mark.engines

OWNERS = [
    namespace(tenant, agent, scope, team)
    for tenant in ("acme", "umbra")
    for agent in ("ada", "bob")
    for scope, team in (("personal", None), ("team", "ops"), ("team", "sre"), ("shared", None))
]
ASKING = [
    principal(t, a, *teams) for t in ("acme", "umbra") for a in ("ada", "bob") for teams in ((), ("ops",))
]
PIPELINES = [Principal.pipeline(TenantId(tenant)) for tenant in ("acme", "umbra")]


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a test that fails must fail again


@dataclass(frozen=True, slots=True)
class Written:
    owner: Namespace
    row_id: str


def expected(asking: Principal, written: list[Written]) -> set[str]:
    """The rule again, in its plainest words."""

    def shown(owner: Namespace) -> bool:
        if owner.tenant_id != asking.tenant_id:
            return False
        if "pipeline" in asking.roles or owner.scope is Scope.SHARED:
            return True
        if owner.scope is Scope.PERSONAL:
            return owner.agent_id == asking.agent_id
        return owner.team_id in asking.teams

    return {row.row_id for row in written if shown(row.owner)}


def row_for(index: Index, owner: Namespace, chance: random.Random) -> OwnedRow:
    if index is Index.DOCUMENTS:
        return document_row(owner, title="Copper ledger", tags=["audit"], body="zephyrine")
    if index is Index.CHUNKS:
        return chunk_row(owner, vector=[1.0, chance.random(), chance.random()])
    return row_of(index, owner)


@pytest.fixture
async def gate(stack: Stack, prefix: str) -> AsyncIterator[Gate]:
    async with opened_gate(stack.opensearch_url, prefix) as opened:
        yield opened


async def fill(gate: Gate, chance: random.Random, rows: int = 120) -> dict[Index, list[Written]]:
    """The same row ids in both tenants: an id is no secret and no wall."""
    written: dict[Index, list[Written]] = {}
    for index in Index:
        taken: dict[tuple[str, str], Namespace] = {}
        for _ in range(rows):
            owner = chance.choice(OWNERS)
            taken[owner.tenant_id, f"r{chance.randrange(rows)}"] = owner
        written[index] = [Written(owner, row_id) for (_, row_id), owner in taken.items()]
        writes = [
            RowWrite(
                principal=Principal.pipeline(row.owner.tenant_id),
                index=index,
                row_id=row.row_id,
                action="index",
                row=row_for(index, row.owner, chance),
                version=1,
            )
            for row in written[index]
        ]
        assert {result.status for result in await gate.write(writes)} == {"applied"}
    await gate.refresh()
    return written


def queries(index: Index) -> list[dict[str, Any]]:
    everything: list[dict[str, Any]] = [
        {"match_all": {}},
        {"bool": {"should": [{"match_all": {}}, {"term": {"tenant_id": "umbra"}}]}},
        {"bool": {"must_not": [{"term": {"tenant_id": "nobody"}}]}},
        {"constant_score": {"filter": {"terms": {"tenant_id": ["acme", "umbra"]}}}},
        {"dis_max": {"queries": [{"match_none": {}}, {"exists": {"field": "tenant_id"}}]}},
        {"ids": {"values": [f"r{n}" for n in range(200)]}},
    ]
    if index is Index.DOCUMENTS:
        everything += [
            {"match": {"body": "zephyrine"}},
            {"multi_match": {"query": "copper", "fields": ["title"]}},
        ]
    if index is Index.ENTITIES:
        everything += [
            {"match": {"name": "redis"}},
            {
                "bool": {
                    "filter": [{"terms": {"grams": ["red", "umb"]}}],
                    "should": [{"term": {"block": "r"}}],
                }
            },
        ]
    if index is Index.CHUNKS:
        knn = {"knn": {"vector": {"vector": [1.0, 0.5, 0.5], "k": 500}}}
        everything += [
            knn,
            {"bool": {"should": [knn]}},
            {"bool": {"must": [{"dis_max": {"queries": [knn]}}]}},
        ]
    return everything


@pytest.mark.parametrize("seed", range(2))
async def test_no_read_shows_another_owner(gate: Gate, seed: int) -> None:
    chance = seeded(seed)
    written = await fill(gate, chance)
    for index in Index:
        for asking in [*ASKING, *PIPELINES]:
            mine = expected(asking, written[index])
            query = chance.choice(queries(index))
            aggregations = {"owners": {"terms": {"field": "tenant_id"}}}
            searches = [
                GatedSearch(
                    principal=asking,
                    index=index,
                    body={"query": q, "size": 500, "track_total_hits": True, "aggs": aggregations},
                )
                for q in queries(index)
            ]
            prepared = [gate.prepare(search) for search in searches]
            for page in await gate.search_many([*searches, *prepared]):
                assert {hit.row_id for hit in page.hits} == mine
                assert page.total == len(mine)
                buckets = page.aggregations["owners"]["buckets"]
                assert buckets == [{"key": asking.tenant_id, "doc_count": len(mine)}]
            assert {row.row_id async for row in gate.scan(asking, index, query)} == mine
            assert await gate.count(asking, index, query) == len(mine)


async def test_no_id_shows_another_owner(gate: Gate) -> None:
    written = await fill(gate, seeded(7))
    ids = [f"r{n}" for n in range(130)]
    for index in Index:
        refs = [RowRef(principal=asking, row_id=row_id) for asking in [*ASKING, *PIPELINES] for row_id in ids]
        rows = await gate.get_many(index, refs, fields=["scope"])
        shown = {(ref.principal, ref.row_id) for ref, row in zip(refs, rows, strict=True) if row is not None}
        assert shown == {
            (asking, row_id)
            for asking in [*ASKING, *PIPELINES]
            for row_id in expected(asking, written[index])
        }


async def test_deleting_everything_deletes_what_is_visible(gate: Gate) -> None:
    written = (await fill(gate, seeded(3)))[Index.DOCUMENTS]
    for asking in ASKING:
        mine = expected(asking, written)
        assert await gate.delete_matching(asking, Index.DOCUMENTS, {"match_all": {}}) == len(mine)
        written = [
            row for row in written if not (row.owner.tenant_id == asking.tenant_id and row.row_id in mine)
        ]
    for pipeline in PIPELINES:
        left = {row.row_id async for row in gate.scan(pipeline, Index.DOCUMENTS, {"match_all": {}})}
        assert left == expected(pipeline, written)


async def test_no_write_touches_another_owner(gate: Gate) -> None:
    """Ids are guessable by who knows the path, so an id alone must give no power over the row."""
    bobs = [
        namespace("acme", "bob", "personal"),
        namespace("acme", "bob", "team", "sre"),
        namespace("umbra", "ada"),
    ]
    owners = dict(enumerate(bobs))
    await gate.write(
        [
            RowWrite(
                principal=Principal.pipeline(owner.tenant_id),
                index=Index.GATE,
                row_id=f"r{n}",
                action="index",
                row=gate_row(owner),
                version=1,
            )
            for n, owner in owners.items()
        ]
    )
    ada = principal("acme", "ada", "ops")
    own = gate_row(namespace("acme", "ada", "personal"), content_hash="sha256:ada")

    def attack(n: int, **how: Any) -> RowWrite:
        return RowWrite(principal=ada, index=Index.GATE, row_id=f"r{n}", **how)

    missing = await gate.write(
        [
            attack(9, action="delete", version=9),
            attack(9, action="replace_if", row=own, seq_no=0, primary_term=1),
        ]
    )
    for n in owners:
        attacks = await gate.write(
            [
                attack(n, action="delete", version=9),
                attack(n, action="replace_if", row=own, seq_no=0, primary_term=1),
            ]
        )
        assert [result.status for result in attacks] == [result.status for result in missing]
    assert (await gate.write([attack(0, action="index", row=own, version=9)]))[0].status == "rejected"
    for n, owner in owners.items():
        ref = RowRef(principal=Principal.pipeline(owner.tenant_id), row_id=f"r{n}")
        (row,) = await gate.get_many(Index.GATE, [ref])
        assert row is not None
        assert (row.source["content_hash"], row.source["agent_id"], row.version) == (
            "sha256:00",
            owner.agent_id,
            1,
        )


async def test_the_filter_stands_inside_the_knn_clause(gate: Gate) -> None:
    """Outside, the nearest k would all be the other tenant's and the answer empty."""

    def chunk(tenant: str, n: int, vector: list[float]) -> RowWrite:
        owner = namespace(tenant)
        row = chunk_row(owner, vector=vector)
        pipeline = Principal.pipeline(owner.tenant_id)
        return RowWrite(
            principal=pipeline, index=Index.CHUNKS, row_id=f"{n}", action="index", row=row, version=1
        )

    near = [chunk("umbra", n, [1.0, n / 1000, 0.0]) for n in range(50)]
    far = [chunk("acme", n, [0.0, 1.0, n / 1000]) for n in range(3)]
    await gate.write(near + far)
    await gate.refresh()
    clause = {"vector": [1.0, 0.0, 0.0], "k": 3, "filter": {"range": {"ordinal": {"gte": 0}}}}
    bodies: list[dict[str, Any]] = [
        {"query": {"knn": {"vector": clause}}},
        {"query": {"bool": {"should": [{"knn": {"vector": clause}}]}}},
    ]
    pages = await gate.search_many(
        [GatedSearch(principal=principal("acme"), index=Index.CHUNKS, body=body) for body in bodies]
    )
    for page in pages:
        assert {hit.row_id for hit in page.hits} == {"0", "1", "2"}
        # 1 + inner product, untouched by the filter around it.
        assert [hit.score for hit in page.hits] == pytest.approx([1.0] * 3)


async def test_a_scan_of_many_pages_is_exhaustive_and_a_delete_too(gate: Gate) -> None:
    me = Principal.pipeline(TenantId("acme"))
    writes = [
        RowWrite(principal=me, index=Index.GATE, row_id=f"r{n}", action="index", row=gate_row(), version=1)
        for n in range(5_100)
    ]
    await gate.write(writes)
    await gate.refresh(Index.GATE)
    rows = [row.row_id async for row in gate.scan(me, Index.GATE, {"match_all": {}}, fields=["doc_id"])]
    assert sorted(rows) == sorted(write.row_id for write in writes)
    assert await gate.delete_matching(me, Index.GATE, {"match_all": {}}) == 5_100
    assert await gate.count(me, Index.GATE, {"match_all": {}}) == 0


async def test_the_engines_own_refusals_are_told(gate: Gate) -> None:
    body = {"query": {"range": {"indexed_at": {"gte": "no date"}}}}
    with pytest.raises(RefusedRequest, match="no date"):
        await gate.search_many([GatedSearch(principal=principal(), index=Index.DOCUMENTS, body=body)])


async def test_a_scan_that_is_left_early_closes_its_point_in_time(gate: Gate, stack: Stack) -> None:
    me = Principal.pipeline(TenantId("acme"))
    write = RowWrite(principal=me, index=Index.GATE, row_id="r", action="index", row=gate_row(), version=1)
    await gate.write([write])
    await gate.refresh(Index.GATE)
    async with FaultProxy(stack.opensearch_url) as proxy:
        client = connect(OpenSearchSettings(), proxy.url)
        names, retry = gate._names, RetryPolicy.once()
        watched = Gate(client, names, retry=retry, settings=OpenSearchSettings())
        async with contextlib.aclosing(watched.scan(me, Index.GATE, {"match_all": {}})) as rows:
            async for _row in rows:
                break
        await watched.close()
        assert [(seen.method, seen.path.rpartition("/")[2]) for seen in proxy.seen] == [
            ("POST", "point_in_time"),
            ("POST", "_search"),
            ("DELETE", "point_in_time"),
        ]
