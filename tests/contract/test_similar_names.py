"""Names looked up on the real engine: what comes of it is what the reference says of all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from indexers.domain.entities.clusters import Clusters, Doubt, Pair, Placement, Proposal, cluster_all
from indexers.domain.entities.curation import Curation
from indexers.domain.entities.reclustering import Reclustering, StoredName
from indexers.domain.identity import EntityNamespace, Principal, TenantId
from indexers.linking.entity_rows import CountedName, LabelRows
from indexers.linking.similar_names import read_names, recluster, similar_names
from indexers.opensearch.gate import Gate, RowWrite
from indexers.opensearch.rows import Index
from tests.conftest import Stack
from tests.store import opened_gate

pytestmark = pytest.mark.engines

OWNER = EntityNamespace(tenant_id=TenantId("acme"), owner="shared")
PIPELINE = Principal.pipeline(OWNER.tenant_id)
LABEL = "service"
ROWS = LabelRows(namespace=OWNER, label=LABEL, curation=Curation())


async def write(
    gate: Gate,
    placements: dict[str, Placement],
    proposals: Sequence[Proposal] = (),
    gone: Sequence[str] = (),
    *,
    rows: LabelRows = ROWS,
) -> None:
    writes: list[RowWrite] = []
    for key, placement in placements.items():
        name = CountedName(
            key=key,
            mentions=1,
            spelling=key,
            likeness_id=rows.name_id(placement.likeness_key),
            entity_id=rows.name_id(placement.entity_key),
        )
        row = rows.entity_row(name, [key], None)
        writes.append(
            RowWrite(
                principal=PIPELINE,
                index=Index.ENTITIES,
                row_id=row.name_id,
                action="index",
                row=row,
                version=1,
            )
        )
    for row_id, proposal in rows.proposal_rows(proposals).items():
        writes.append(
            RowWrite(
                principal=PIPELINE,
                index=Index.PROPOSALS,
                row_id=row_id,
                action="index",
                row=proposal,
                version=1,
            )
        )
    writes += [
        RowWrite(
            principal=PIPELINE, index=Index.ENTITIES, row_id=rows.name_id(key), action="delete", version=1
        )
        for key in gone
    ]
    await gate.write(writes)
    await gate.refresh(Index.ENTITIES, Index.PROPOSALS)


def alone(*keys: str) -> dict[str, Placement]:
    return {key: Placement(likeness_key=key, entity_key=key) for key in keys}


async def test_a_look_up_finds_what_is_alike_and_nothing_of_other_places(stack: Stack, prefix: str) -> None:
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        kept = alone("payments gateway", "payment gateway", "payout gatekeep", "hrdv", "billing ledger")
        joined = Placement(likeness_key="payments gateway", entity_key="payments gateway")
        doubt = Proposal(
            key="payments gateway",
            entity_key="payments gateway",
            other="payments gatekee",
            other_entity_key="payments gatekee",
            similarity=0.8125,
            reason="similar",
        )
        await write(gate, kept | {"payment gateway": joined} | alone("payments gatekee"), [doubt])
        for other in (
            LabelRows(namespace=OWNER, label="system", curation=Curation()),
            LabelRows(
                namespace=EntityNamespace(tenant_id=OWNER.tenant_id, owner="team:ops"),
                label=LABEL,
                curation=Curation(),
            ),
        ):
            await write(gate, alone("payments gateways"), rows=other)
        found = await similar_names(gate, OWNER, LABEL, ["payments gateway x", "hrdv", "paymentsgateway"])
        assert {key: sorted(name.key for name in names) for key, names in found.items()} == {
            "payments gateway x": [],
            "hrdv": ["hrdv"],
            "paymentsgateway": ["payments gateway"],
        }
        [near] = (await similar_names(gate, OWNER, LABEL, ["payments gateways"])).values()
        told = Doubt(earlier="payments gateway", similarity=0.8125, reason="similar")
        assert {name.key: name for name in near if name.key.startswith("payment")} == {
            "payments gateway": StoredName(
                key="payments gateway", placement=kept["payments gateway"], proposals=None
            ),
            "payment gateway": StoredName(key="payment gateway", placement=joined, proposals=None),
            "payments gatekee": StoredName(
                key="payments gatekee",
                placement=alone("payments gatekee")["payments gatekee"],
                proposals=(told,),
            ),
        }


async def test_an_answer_is_whole_however_many_rows_and_names_it_is_of(
    stack: Stack, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexers.linking.name_search.HITS_MAX", 2)
    names = [f"payments gateway{letter}" for letter in "abcde"]
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        await write(gate, alone(*names))
        found = await similar_names(gate, OWNER, LABEL, ["payments gateway"])
        assert sorted(name.key for name in found["payments gateway"]) == names
        # One name of a search, one search of a request: the same.
        monkeypatch.setattr("indexers.linking.name_search.CLAUSES_MAX", 1)
        monkeypatch.setattr("indexers.linking.name_search.SEARCHES_MAX", 1)
        longest = "payments gateway " + "x" * 183
        asked = ["payments gateway", "payment gateway", "paymentsgateway", "hrdv", longest]
        parted = await similar_names(gate, OWNER, LABEL, asked)
        monkeypatch.undo()
        assert parted == await similar_names(gate, OWNER, LABEL, asked)
        assert sorted(name.key for name in parted["payment gateway"]) == names


async def test_a_name_whose_canonical_one_was_never_written_points_nowhere(stack: Stack, prefix: str) -> None:
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        lost = Placement(likeness_key="payments gateways", entity_key="payments gateways")
        await write(gate, {"payments gateway": lost})
        assert await read_names(gate, OWNER, LABEL, ["payments gateway", "unknown"]) == {
            "payments gateway": StoredName(
                key="payments gateway", placement=Placement(likeness_key="", entity_key="")
            )
        }
        work = Reclustering(LABEL, added=["payments gateways"])
        assert (await recluster(gate, OWNER, LABEL, work)).placements == {
            **alone("payments gateways"),
            "payments gateway": lost,
        }


async def test_batches_of_names_on_the_real_engine_end_as_the_reference(stack: Stack, prefix: str) -> None:
    rng = random.Random(7)  # noqa: S311  # the same names in each run
    names = sorted(
        {
            f"{''.join(rng.choice('ab') for _ in range(7))} {''.join(rng.choice('ab') for _ in range(4))}"
            for _ in range(160)
        }
    )
    rng.shuffle(names)
    merges: set[Pair] = {(names[0], names[90]), (names[1], names[2])}
    async with opened_gate(stack.opensearch_url, prefix) as gate:
        state: dict[str, Placement] = {}
        proposals: dict[str, tuple[Proposal, ...]] = {}
        for start in range(0, len(names), 50):
            gone = rng.sample(sorted(state), min(len(state), 8))
            touched = {key for pair in merges for key in pair} if start == 0 else set()
            work = Reclustering(
                LABEL,
                added=names[start : start + 50],
                removed=gone,
                touched=touched,
                merges=merges,
                merge_names=(
                    await read_names(gate, OWNER, LABEL, {key for pair in merges for key in pair})
                ).values(),
            )
            changes = await recluster(gate, OWNER, LABEL, work)
            stale = [p for key in changes.proposals for p in proposals.get(key, ())]
            await gate.write(
                [
                    RowWrite(
                        principal=PIPELINE, index=Index.PROPOSALS, row_id=row_id, action="delete", version=1
                    )
                    for row_id in ROWS.proposal_rows(stale)
                ]
            )
            proposals = {k: v for k, v in (proposals | dict(changes.proposals)).items() if v}
            fresh = [p for key in changes.proposals for p in proposals.get(key, ())]
            await write(gate, dict(changes.placements), fresh, gone)
            state = {k: p for k, p in (state | dict(changes.placements)).items() if k not in gone}
            expected = cluster_all(state, LABEL, (), merges)
            assert Clusters(placements=state, proposals=proposals) == expected
        stored = await read_names(gate, OWNER, LABEL, state)
        assert {key: name.placement for key, name in stored.items()} == state
