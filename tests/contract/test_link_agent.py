"""Mentions become edges, names and entities: any order, any number of times, by one worker or two."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from indexers.domain.entities.names import shape_of
from indexers.domain.identity import Scope, TenantId, mention_id
from indexers.opensearch.gate import RowWrite, WriteResult
from indexers.opensearch.rows import Index
from indexers.verify.entities import EntityVerifier
from indexers.verify.report import VerifyReport
from streams.batch import Record
from tests.agents import agent_config, vault_root
from tests.conftest import Stack
from tests.linking import (
    LinkRig,
    entity_indices,
    feed_all,
    opened_link_rig,
    own_tenant,
)

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def indices(stack: Stack) -> AsyncIterator[str]:
    async with entity_indices(stack) as prefix:
        yield prefix


@pytest_asyncio.fixture(loop_scope="module")
async def rig(stack: Stack, indices: str, tmp_path: Path) -> AsyncIterator[LinkRig]:
    config = agent_config(stack, indices, [vault_root(tmp_path, tenant=own_tenant())])
    async with opened_link_rig(config) as opened:
        yield opened


async def test_c08_the_same_event_three_times(rig: LinkRig) -> None:
    [osprey] = await rig.said("ferry.md", {"system": "Osprey"})
    await rig.feed(osprey, osprey)
    once = await rig.graph()
    await rig.feed(osprey)
    assert await rig.graph() == once
    assert await rig.entities() == {"Osprey": (1, ["osprey"])}
    assert len(once[Index.MENTIONS]) == 1


async def test_rows_of_a_name_and_its_edge(rig: LinkRig) -> None:
    await rig.feed(await rig.said("ferry.md", {"system": ["Osprey", "OSPREY"]}))
    name_id = rig.owner.name_id("system", "osprey")
    doc_id = rig.home.document("ferry.md").doc_id
    owner = {"tenant_id": rig.home.tenant_id, "team_id": None, "scope": "shared"}
    [edge] = [row for row in (await rig.rows(Index.MENTIONS)).values() if row["key"] == "osprey"]
    shape = shape_of("osprey", "system")
    assert (await rig.rows(Index.ENTITIES))[name_id] == owner | {
        "agent_id": "hopline",
        "name_id": name_id,
        "likeness_id": name_id,
        "entity_id": name_id,
        "namespace": "shared",
        "label": "system",
        "key": "osprey",
        "name": edge["surface"],
        "canonical": True,
        "mentions": 1,
        "mention_count": 1,
        "blocked": False,
        "grams": list(shape.grams),
        "block": shape.block,
        "length": shape.length,
    }
    assert (await rig.rows(Index.MENTIONS))[mention_id(doc_id, name_id)] == edge
    assert {name: edge[name] for name in ("agent_id", "doc_id", "path", "name_id", "source")} == {
        "agent_id": "ada",
        "doc_id": doc_id,
        "path": "ferry.md",
        "name_id": name_id,
        "source": "model",
    }


async def test_c14_forgetting_one_of_two_documents(rig: LinkRig) -> None:
    await rig.feed(
        await rig.said("d1.md", {"person": "Orla Mint", "system": "Tidewheel"}),
        await rig.said("d2.md", {"system": "Tidewheel"}),
    )
    assert await rig.entities() == {"Orla Mint": (1, ["orla mint"]), "Tidewheel": (2, ["tidewheel"])}
    gone = await rig.gone("d1.md", "person", "system", "team")
    await rig.feed(gone)
    assert await rig.entities() == {"Tidewheel": (1, ["tidewheel"])}
    assert [row["path"] for row in (await rig.rows(Index.MENTIONS)).values()] == ["d2.md"]
    await rig.feed(await rig.said("d3.md", {"system": "Tidewheel"}), gone)
    assert await rig.entities() == {"Tidewheel": (2, ["tidewheel"])}


async def test_c17_codes_acronyms_and_companies(rig: LinkRig) -> None:
    spoken: list[tuple[str, str, str]] = [
        ("a.md", "code", "QX-4103"),
        ("b.md", "code", "QX-4105"),
        ("c.md", "code", "QX-4103B"),
        ("d.md", "organization", "HRDV"),
        ("e.md", "organization", "HRDV"),
        ("f.md", "organization", "Hollis & Rue Ltd."),
        ("g.md", "organization", "Hollis and Rue Ltd"),
    ]
    await rig.feed(*[await rig.said(path, {label: name}) for path, label, name in spoken])
    found = await rig.entities()
    assert {name: count for name, (count, _) in found.items()} == {
        "QX-4103": 1,
        "QX-4105": 1,
        "QX-4103B": 1,
        "HRDV": 2,
        "Hollis & Rue Ltd.": 2,
    }
    await rig.check_clusters("organization")


#: Spellings that join, spellings to be proposed, codes one digit apart, names that stand alone.
SPELLINGS = {
    "organization": [
        "Hollis & Rue Ltd.", "Hollis and Rue Ltd", "Hollis & Rue", "HRDV", "Northwind Traders", "Northwind Trader",
        "Northwnd Traders", "Northwind Trading", "Vandermeer Logistics", "Vandermeer Logistic", "부산물류", "부산 물류",
    ],
    "service": [
        "checkout-gateway", "checkout gateway", "checkout-gatewy", "checkouts-gateway", "payout-ledger",
        "payout-ledgers", "payout ledgr", "route-planner", "route planners", "address-book", "notification-hub",
        "notifications-hub", "notificaton-hub", "QX-4103", "QX-4105",
    ],
    "person": ["Orla Mint", "Orla Minnt", "Alexandra Peterson", "Aleksandra Peterson", "Alexandra Petersen", "Jo Wu"],
}  # fmt: skip


async def storm(rig: LinkRig, rnd: random.Random) -> tuple[list[Record], list[Record]]:
    """Events of 40 documents, each indexed up to four times, some gone at the end; and the last word on each."""
    every: list[Record] = []
    last: list[Record] = []
    for n in range(40):
        path = f"{n:02d}.md"
        for turn in range(rnd.randint(1, 4)):
            names = {
                label: rnd.sample(spellings, rnd.randint(0, 3)) for label, spellings in SPELLINGS.items()
            }
            records = await rig.said(path, names)
            if turn and rnd.random() < 0.2:
                records = await rig.gone(path, *SPELLINGS)
            every += records
        last += records
    return every, last


async def test_a_thousand_events_in_any_order_and_number_give_the_same_rows(rig: LinkRig) -> None:
    rnd = random.Random(4)  # noqa: S311 - reproducible order
    every, last = await storm(rig, rnd)
    await rig.feed(*last)
    due = await rig.graph()
    for label in SPELLINGS:
        await rig.check_clusters(label)
    again = every + rnd.choices(every, k=1_000 - len(every))
    rnd.shuffle(again)
    await feed_all(rig, in_batches(again, rnd))
    assert await rig.graph() == due
    await rig.clear()
    rnd.shuffle(again)
    await feed_all(rig, in_batches(again, rnd))
    assert await rig.graph() == due


async def test_two_workers_that_overlap(rig: LinkRig) -> None:
    """One of them has lost its partition and doesn't know it yet."""
    rnd = random.Random(7)  # noqa: S311 - reproducible order
    every, last = await storm(rig, rnd)
    async with opened_link_rig(rig.config) as zombie:
        await asyncio.gather(
            feed_all(rig, in_batches(every, rnd)),
            feed_all(zombie, in_batches(rnd.sample(every, len(every)), rnd)),
        )
    found = await rig.graph()
    for label in SPELLINGS:
        await rig.check_clusters(label)
    await rig.clear()
    await rig.feed(*last)
    assert found == await rig.graph()


def in_batches(records: Sequence[Record], rnd: random.Random) -> list[Sequence[Record]]:
    batches: list[Sequence[Record]] = []
    at = 0
    while at < len(records):
        size = rnd.randint(1, 120)
        batches.append(records[at : at + size])
        at += size
    return batches


async def test_a_label_that_is_retired_takes_its_edges_along(rig: LinkRig) -> None:
    version = await rig.stored("a.md")
    await rig.feed(
        rig.told("a.md", "system", "Tidewheel", version=version),
        rig.told("a.md", "team", "Compass", version=version),
    )
    # Extracted again with other labels: the same version, and nothing of the retired one.
    await rig.feed(rig.told("a.md", "system", version=version))
    assert await rig.entities() == {"Compass": (1, ["compass"])}
    await rig.feed(rig.told("a.md", "system", "Tidewheel", "Osprey", version=version))
    assert sorted(await rig.entities()) == ["Compass", "Osprey", "Tidewheel"]


async def test_events_of_documents_that_changed_or_went_are_left_out(rig: LinkRig) -> None:
    first = await rig.said("a.md", {"system": "Tidewheel"})
    second = await rig.said("a.md", {"system": "Osprey"})
    never = rig.told("b.md", "system", "Tidewheel", version=1)
    await rig.feed(first, never)
    assert await rig.entities() == {}
    await rig.feed(second, first)
    assert await rig.entities() == {"Osprey": (1, ["osprey"])}
    await rig.stored("a.md", deleted=True)
    await rig.feed(second)
    assert await rig.entities() == {}
    assert await rig.rows(Index.MENTIONS) == {}


async def test_the_most_frequent_spelling_is_shown(rig: LinkRig) -> None:
    for n, surface in enumerate(["Osprey", "OSPREY", "OSPREY"]):
        await rig.feed(await rig.said(f"{n}.md", {"system": surface}))
    assert await rig.entities() == {"OSPREY": (3, ["osprey"])}
    await rig.feed(await rig.said("1.md", {"system": "osprey"}), await rig.said("2.md", {"system": "Osprey"}))
    assert await rig.entities() == {"Osprey": (3, ["osprey"])}


async def test_a_document_counts_once_for_an_entity_of_several_names(rig: LinkRig) -> None:
    await rig.feed(
        await rig.said("a.md", {"organization": ["Northwind Traders", "Northwind Trader"]}),
        await rig.said("b.md", {"organization": "Northwind Trader"}),
    )
    names = ["northwind trader", "northwind traders"]
    assert await rig.entities() == {"Northwind Traders": (2, names)}


async def test_namespaces_and_tenants_share_no_names(rig: LinkRig) -> None:
    own = replace(rig.home, scope=Scope.PERSONAL)
    other = replace(rig.home, tenant_id=TenantId(own_tenant()))
    await rig.feed(
        await rig.said("a.md", {"system": "Osprey"}),
        await rig.said("a.md", {"system": "Osprey"}, home=own),
        await rig.said("a.md", {"system": "Osprey"}, home=other),
    )
    rows = (await rig.rows(Index.ENTITIES)).values()
    assert sorted((r["namespace"], r["scope"], r["agent_id"], r["mention_count"]) for r in rows) == [
        ("agent:ada", "personal", "ada", 1),
        ("shared", "shared", "hopline", 1),
    ]


class Killed(BaseException):
    """As `kill -9` in the middle of a batch: nothing after it is done."""


@contextlib.contextmanager
def killed_after(rig: LinkRig, writes: int) -> Iterator[None]:
    """That many bulk requests of the batch reach the store."""
    left = [writes]
    write = rig.gate.write

    async def counted(rows: Sequence[RowWrite]) -> list[WriteResult]:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return await write(rows)

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(rig.gate, "write", counted)
        yield


@pytest.mark.parametrize("writes", range(5))
async def test_a_batch_that_was_cut_off_is_repeated_to_the_end(rig: LinkRig, writes: int) -> None:
    """After the edges, the names that stay, those that come or go, before the outdated edges go: the same rows."""
    for n, name in enumerate(
        ["Northwind Trader", "Northwind Tradr", "Northwnd Trading", "HRDV", "Hollis & Rue"]
    ):
        await rig.feed(await rig.said(f"{n}.md", {"organization": name}))
    batch = [
        # Longer, so it comes first: two that were canonical join it.
        *await rig.said("new.md", {"organization": "Northwind Traders"}),
        *await rig.said("0.md", {"organization": ["HRDV", "Osprey Lines"]}),
        *await rig.gone("4.md", "organization"),
    ]
    with killed_after(rig, writes):
        await rig.feed(batch)
    await rig.feed(batch)
    await rig.check_clusters("organization")
    report = VerifyReport(root="main")
    await EntityVerifier(gate=rig.gate, namespace=rig.owner, report=report).run()
    assert (report.counts, report.names) == ({}, 5)
    assert {(row["path"], row["key"]) for row in (await rig.rows(Index.MENTIONS)).values()} == {
        ("new.md", "northwind traders"),
        ("0.md", "hrdv"),
        ("0.md", "osprey lines"),
        ("1.md", "northwind tradr"),
        ("2.md", "northwnd trading"),
        ("3.md", "hrdv"),
    }
