"""Indices are made once, whoever comes first; a foreign vector space is refused (C12)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import to_builtins

from indexers.domain.identity import Principal, TenantId
from indexers.errors import ConfigurationError, RefusedRequest, Transient
from indexers.opensearch.connect import connect, request
from indexers.opensearch.gate import Gate, GatedSearch, RowRef, RowWrite, VectorSpace
from indexers.opensearch.names import MAPPING_VERSION, IndexNames
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import REBUILT, Index
from indexers.settings import OpenSearchSettings
from tests.conftest import Stack
from tests.contract.fault_proxy import FaultProxy
from tests.entity_rows import row_of
from tests.store import DIMENSION, PAIR_ID, document_row, link_row, namespace, opened_gate

pytestmark = pytest.mark.engines


async def aliases(url: str, prefix: str) -> dict[str, list[str]]:
    client = connect(OpenSearchSettings(), url)
    try:
        answer = await request(client, "GET", f"/{prefix}-*/_alias")
    finally:
        await client.close()
    return {index: sorted(entry["aliases"]) for index, entry in sorted(answer.items())}


async def test_two_processes_at_once(stack: Stack, prefix: str) -> None:
    async with (
        opened_gate(stack.opensearch_url, prefix, ensure=False) as first,
        opened_gate(stack.opensearch_url, prefix, ensure=False) as second,
    ):
        await asyncio.gather(
            *(gate.ensure_indices(dimension=3, pair_id="p", cosine_floor=0.7) for gate in (first, second) * 2)
        )
        chunks = {f"{prefix}-chunks-v1": [f"{prefix}-chunks", f"{prefix}-chunks@1"]}
        assert (
            await aliases(stack.opensearch_url, prefix)
            == {f"{prefix}-{index}-v1": [f"{prefix}-{index}"] for index in sorted(Index)} | chunks
        )
        assert await second.vector_space() == VectorSpace(pair_id="p", dimension=3, cosine_floor=0.7)


@pytest.mark.parametrize(("dimension", "pair_id"), [(4, PAIR_ID), (DIMENSION, "another")])
async def test_c12_another_vector_space_is_refused(
    stack: Stack, prefix: str, dimension: int, pair_id: str
) -> None:
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        with pytest.raises(ConfigurationError, match=r"hopline rebuild.*vault"):
            await gate.ensure_indices(dimension=dimension, pair_id=pair_id)
        assert await gate.vector_space() == VectorSpace(pair_id=PAIR_ID, dimension=DIMENSION)
        await gate.drop_indices()
        await gate.ensure_indices(dimension=dimension, pair_id=pair_id)
        assert await gate.vector_space() == VectorSpace(pair_id=pair_id, dimension=dimension)


async def test_an_index_of_another_version_is_refused_and_says_what_to_do(stack: Stack, prefix: str) -> None:
    client = connect(OpenSearchSettings(), stack.opensearch_url)
    try:
        async with opened_gate(stack.opensearch_url, prefix) as gate:
            older = {"_meta": {"schema_version": MAPPING_VERSION - 1}}
            await request(client, "PUT", f"/{prefix}-links-v1/_mapping", body=older)
            with pytest.raises(
                ConfigurationError, match=r"links-v1 was made by another version.*hopline rebuild"
            ):
                await gate.ensure_indices(dimension=DIMENSION, pair_id=PAIR_ID)
    finally:
        await client.close()


async def test_a_lost_alias_is_mended(stack: Stack, prefix: str) -> None:
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        client = connect(OpenSearchSettings(), stack.opensearch_url)
        await request(client, "DELETE", f"/{prefix}-links-v1/_alias/{prefix}-links")
        await client.close()
        await gate.ensure_indices(dimension=DIMENSION, pair_id=PAIR_ID)
        assert (await aliases(stack.opensearch_url, prefix))[f"{prefix}-links-v1"] == [f"{prefix}-links"]


async def test_an_index_in_the_place_of_an_alias_is_named(stack: Stack, prefix: str) -> None:
    client = connect(OpenSearchSettings(), stack.opensearch_url)
    await request(client, "PUT", f"/{prefix}-links")
    async with opened_gate(stack.opensearch_url, prefix, ensure=False) as gate:
        with pytest.raises(ConfigurationError, match=f"an index is named {prefix}-links"):
            await gate.ensure_indices(dimension=DIMENSION, pair_id=PAIR_ID)
    await request(client, "DELETE", f"/{prefix}-links")
    await client.close()


async def test_dropping_twice_is_fine(stack: Stack, prefix: str) -> None:
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        await gate.drop_indices()
        await gate.drop_indices()
        with pytest.raises(Transient):
            await gate.refresh()


async def test_a_large_tenant_has_indices_of_its_own(stack: Stack, prefix: str) -> None:
    settings = OpenSearchSettings(dedicated_tenants={"umbra": "big"})
    async with opened_gate(stack.opensearch_url, prefix, settings=settings) as gate:
        assert f"{prefix}-chunks-big-v1" in await aliases(stack.opensearch_url, prefix)
        tenants = [Principal.pipeline(TenantId(name)) for name in ("acme", "umbra")]
        await gate.write(
            [
                RowWrite(
                    principal=tenant,
                    index=Index.DOCUMENTS,
                    row_id="r",
                    action="index",
                    row=document_row(namespace(tenant.tenant_id), title=tenant.tenant_id),
                    version=1,
                )
                for tenant in tenants
            ]
        )
        await gate.refresh()
        body = {"query": {"match_all": {}}, "_source": ["title"]}
        searches = [GatedSearch(principal=tenant, index=Index.DOCUMENTS, body=body) for tenant in tenants]
        pages = await gate.search_many(searches)
        assert [[hit.source["title"] for hit in page.hits] for page in pages] == [["acme"], ["umbra"]]
        rows = await gate.get_many(Index.DOCUMENTS, [RowRef(principal=t, row_id="r") for t in tenants])
        assert [row and row.source["title"] for row in rows] == ["acme", "umbra"]
        assert await gate.delete_matching(tenants[1], Index.DOCUMENTS, {"match_all": {}}) == 1
        assert [await gate.count(t, Index.DOCUMENTS, {"match_all": {}}) for t in tenants] == [1, 0]


async def test_a_node_that_answers_late_is_waited_for(stack: Stack, prefix: str) -> None:
    reasons: list[str] = []
    retry = RetryPolicy(
        base_seconds=0.01, attempts=5, on_wait=lambda reason, _seconds: reasons.append(reason)
    )
    async with FaultProxy(stack.opensearch_url) as proxy:
        proxy.drop("_index_template", times=1)
        proxy.fail_requests("_index_template", status=503, times=1)
        async with opened_gate(proxy.url, prefix, retry=retry) as gate:
            assert (await gate.vector_space()).dimension == DIMENSION
    assert [reason.split(":")[0] for reason in reasons] == [
        "OpenSearch can't be reached",
        "OpenSearch answered 503",
    ]


async def test_one_index_that_fails_fails_the_attempt_not_the_others(stack: Stack, prefix: str) -> None:
    reasons: list[str] = []
    retry = RetryPolicy(base_seconds=0.01, attempts=2, on_wait=lambda reason, _: reasons.append(reason))
    async with FaultProxy(stack.opensearch_url) as proxy:
        proxy.fail_requests(f"{prefix}-links-v1", status=503, times=1)
        async with opened_gate(proxy.url, prefix, retry=retry):
            assert sorted(await aliases(stack.opensearch_url, prefix)) == sorted(
                f"{prefix}-{index}-v1" for index in Index
            )
        made = [seen.path for seen in proxy.seen if seen.method == "PUT"]
    assert [reason.split(":")[0] for reason in reasons] == ["OpenSearch answered 503"]
    again = [f"/{prefix}-{index}-v1" for index in Index if index is not Index.CHUNKS]
    # Of chunks there is a generation by then: no process makes another in its place.
    assert sorted(made) == sorted(
        [*2 * [f"/_index_template/{prefix}-indices", *again], f"/{prefix}-chunks-v1"]
    )


async def test_an_index_made_by_others_takes_no_row(stack: Stack, prefix: str) -> None:
    client = connect(OpenSearchSettings(), stack.opensearch_url)
    try:
        async with opened_gate(stack.opensearch_url, prefix):
            await request(client, "PUT", f"/{prefix}-links-v2")
            path, params = f"/{prefix}-links-v2/_doc/r", {"routing": "acme"}
            with pytest.raises(RefusedRequest, match="strict"):
                await request(client, "PUT", path, params=params, body=to_builtins(link_row()))
        await request(client, "DELETE", f"/{prefix}-links-v2")
    finally:
        await client.close()


async def test_what_a_rebuild_drops_is_all_but_control_and_events(stack: Stack, prefix: str) -> None:
    tenant = Principal.pipeline(TenantId("acme"))
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        writes = [
            RowWrite(principal=tenant, index=index, row_id="r", action="index", row=row_of(index), version=1)
            for index in Index
        ]
        assert {result.status for result in await gate.write(writes)} == {"applied"}
        await gate.drop_indices(REBUILT)
        left = sorted(await aliases(stack.opensearch_url, prefix))
        assert left == [f"{prefix}-control-v1", f"{prefix}-events-v1"]
        await gate.ensure_indices(dimension=DIMENSION, pair_id="another")
        ref = RowRef(principal=tenant, row_id="r")
        kept = {index: await gate.get_many(index, [ref]) for index in Index}
        assert {index for index, [row] in kept.items() if row is not None} == {
            Index.CONTROL,
            Index.EVENTS,
        }
        for index in (Index.CONTROL, Index.EVENTS):
            [row] = kept[index]
            assert row is not None
            assert row.source == to_builtins(row_of(index))


async def test_refused_credentials_are_a_setting(stack: Stack, prefix: str) -> None:
    settings = OpenSearchSettings()
    async with FaultProxy(stack.opensearch_url) as proxy:
        proxy.fail_requests("/", status=401)
        client = connect(settings, proxy.url)
        gate = Gate(client, IndexNames(prefix=prefix), retry=RetryPolicy(), settings=settings)
        with pytest.raises(ConfigurationError, match="HOPLINE_OPENSEARCH__PASSWORD"):
            await gate.ensure_indices(dimension=DIMENSION, pair_id=PAIR_ID)
        with pytest.raises(ConfigurationError):
            await gate.refresh()
        await gate.close()
