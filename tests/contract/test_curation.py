"""What curators decide: kept in the vault, applied once, taken back exactly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from indexers.opensearch.rows import Index
from streams.batch import Record
from streams.events import CurationCommand
from tests.agents import agent_config, vault_root
from tests.conftest import Stack
from tests.linking import LinkRig, entity_indices, opened_link_rig, own_tenant

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]
NAMES = ["Northwind Traders", "Northwind Trader", "Hollis & Rue", "HRDV", "Northwnd Trading"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def indices(stack: Stack) -> AsyncIterator[str]:
    async with entity_indices(stack) as prefix:
        yield prefix


@pytest_asyncio.fixture(loop_scope="module")
async def rig(stack: Stack, indices: str, tmp_path: Path) -> AsyncIterator[LinkRig]:
    config = agent_config(stack, indices, [vault_root(tmp_path, tenant=own_tenant())])
    async with opened_link_rig(config) as opened:
        for n, name in enumerate(NAMES):
            await opened.feed(
                await opened.said(f"{n}.md", {"organization": [name]}),
                await opened.said(f"{n}-too.md", {"organization": [name, NAMES[0]] if n == 2 else [name]}),
            )
        yield opened


def event_id(record: Record) -> str:
    return msgspec.json.decode(record.value or b"", type=CurationCommand).event_id


async def test_merge_and_unmerge_give_back_the_same_rows(rig: LinkRig) -> None:
    before = await rig.graph()
    merge = rig.command("merge", "organization", "Hollis & Rue", "Northwind Trader")
    await rig.feed(merge)
    merged = await rig.entities()
    # Five documents mention the traders, two Hollis & Rue, and one of them both. The earliest name is the entity's.
    names = ["hollis and rue", "northwind trader", "northwind traders"]
    assert merged == {
        "Northwind Traders": (6, names),
        "HRDV": (2, ["hrdv"]),
        "Northwnd Trading": (2, ["northwnd trading"]),
    }
    await rig.check_clusters("organization", merges=[("hollis and rue", "northwind trader")])
    once = await rig.graph()
    await rig.feed(merge)
    assert await rig.graph() == once
    assert once[Index.MENTIONS] == before[Index.MENTIONS]
    undo = rig.command("unmerge", "organization", "Northwind Trader", "Hollis & Rue", undoes=event_id(merge))
    await rig.feed(undo)
    assert await rig.graph() == before
    await rig.feed(undo, merge)
    assert await rig.graph() == before


async def test_c17_a_name_joined_by_likeness_leaves_and_comes_back(rig: LinkRig) -> None:
    before = await rig.graph()
    leave = rig.command("unmerge", "organization", "Northwind Trader", "Northwind Traders")
    await rig.feed(leave)
    pair = ("northwind trader", "northwind traders")
    await rig.check_clusters("organization", apart=[pair])
    assert (await rig.entities())["Northwind Trader"] == (2, ["northwind trader"])
    await rig.feed(rig.command("merge", "organization", *pair))
    after = await rig.graph()
    assert after[Index.ENTITIES] == before[Index.ENTITIES]


async def test_proposals_are_accepted_and_rejected(rig: LinkRig) -> None:
    [proposal] = (await rig.rows(Index.PROPOSALS)).values()
    pair = (proposal["key"], proposal["other_key"])
    assert pair == ("northwind traders", "northwnd trading")
    await rig.feed(rig.command("reject", "organization", *pair))
    assert await rig.rows(Index.PROPOSALS) == {}
    await rig.check_clusters("organization", apart=[pair])
    await rig.feed(rig.command("accept", "organization", *pair))
    assert await rig.rows(Index.PROPOSALS) == {}
    assert (await rig.entities())["Northwind Traders"][1] == [
        "northwind trader",
        "northwind traders",
        "northwnd trading",
    ]


async def test_a_chosen_name_survives_and_moves_with_its_entity(rig: LinkRig) -> None:
    await rig.feed(rig.command("rename", "organization", "Northwind Trader", name="Northwind, Inc."))
    assert (await rig.entities())["Northwind, Inc."] == (5, ["northwind trader", "northwind traders"])
    await rig.feed(await rig.said("more.md", {"organization": "Northwind Traders"}))
    assert (await rig.entities())["Northwind, Inc."] == (6, ["northwind trader", "northwind traders"])
    # Its own spelling is back as soon as it is not the canonical name of a renamed entity.
    await rig.feed(rig.command("unmerge", "organization", "Northwind Trader", "Northwind Traders"))
    found = await rig.entities()
    assert found["Northwind, Inc."] == (2, ["northwind trader"])
    assert found["Northwind Traders"] == (4, ["northwind traders"])


async def test_a_blocked_entity_stays_and_says_so(rig: LinkRig) -> None:
    before = await rig.graph()
    await rig.feed(rig.command("block", "organization", "Northwind Trader"))
    rows = (await rig.rows(Index.ENTITIES)).values()
    assert {row["key"]: row["blocked"] for row in rows} == {
        "northwind traders": True,
        "northwind trader": True,
        "hollis and rue": False,
        "hrdv": False,
        "northwnd trading": False,
    }
    await rig.feed(rig.command("unblock", "organization", "Northwind Traders"))
    assert await rig.graph() == before


async def test_a_word_on_names_that_come_later(rig: LinkRig) -> None:
    await rig.feed(rig.command("merge", "organization", "Osprey Lines", "HRDV"))
    assert (await rig.entities())["HRDV"] == (2, ["hrdv"])
    await rig.feed(await rig.said("later.md", {"organization": "Osprey Lines"}))
    assert (await rig.entities())["Osprey Lines"] == (3, ["hrdv", "osprey lines"])
    await rig.feed(await rig.gone("later.md", "organization"))
    assert (await rig.entities())["HRDV"] == (2, ["hrdv"])


async def test_c14_what_was_said_of_a_name_is_erased_with_its_last_mention(rig: LinkRig) -> None:
    merge = rig.command("merge", "organization", "Osprey Lines", "HRDV")
    rename = rig.command("rename", "organization", "Osprey Lines", name="The Ospreys")
    block = rig.command("block", "organization", "Hollis & Rue")
    await rig.feed(await rig.said("osprey.md", {"organization": "Osprey Lines"}))
    await rig.feed(await rig.said("osprey-too.md", {"organization": "Osprey Lines"}))
    await rig.feed(merge, rename, block)
    # Another document still mentions the name, so what curators said of it stands.
    await rig.feed(await rig.gone("osprey.md", "organization", erased=True))
    assert rig.journal() == [merge.value, rename.value, block.value]
    # A deletion that isn't for good leaves it too: the name may come back.
    last = await rig.gone("osprey-too.md", "organization")
    await rig.feed(*last)
    assert len(await rig.rows(Index.CURATION)) == 3
    await rig.feed(await rig.said("osprey-too.md", {"organization": "Osprey Lines"}))
    last = await rig.gone("osprey-too.md", "organization", erased=True)
    await rig.feed(*last)
    await rig.feed(*last)
    assert rig.journal() == [block.value]
    assert set(await rig.rows(Index.CURATION)) == {event_id(block)}
    # What is replayed of it is no word any more.
    await rig.feed(merge, rename)
    assert (rig.journal(), set(await rig.rows(Index.CURATION))) == ([block.value], {event_id(block)})
    assert b"osprey" not in (rig.config.roots[0].path / ".hopline/curation.jsonl").read_bytes().lower()


async def test_commands_stand_in_the_vault_and_in_the_index_once(rig: LinkRig) -> None:
    merge = rig.command("merge", "organization", "Hollis & Rue", "HRDV")
    block = rig.command("block", "organization", "HRDV")
    await rig.feed(merge, block, merge)
    await rig.feed(block)
    assert rig.journal() == [merge.value, block.value]
    event = msgspec.json.decode(merge.value or b"", type=CurationCommand)
    assert (await rig.rows(Index.CURATION))[event.event_id] == {
        "tenant_id": rig.home.tenant_id,
        "agent_id": "hopline",
        "team_id": None,
        "scope": "shared",
        "namespace": "shared",
        "label": "organization",
        "kind": "merge",
        "keys": ["hollis and rue", "hrdv"],
        "name": None,
        "undoes": None,
        "by": "curator",
        "at": event.occurred_at,
        "reason": "because",
        "version": event.version,
        "event_id": event.event_id,
    }


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("2026-W49-1", "2026-11-30T00:00:00.000000+00:00"),
        ("9999-12-31T23:59:59.999999+23:59", "9999-12-31T00:00:59.999999+00:00"),
    ],
)
async def test_a_moment_in_a_form_that_the_store_does_not_know(rig: LinkRig, told: str, kept: str) -> None:
    """Else the vault would keep a command that the index never gets, with every rebuild anew."""
    block = rig.command("block", "organization", "HRDV", occurred_at=told)
    await rig.feed(block)
    assert rig.journal() == [block.value]
    assert (await rig.rows(Index.CURATION))[event_id(block)]["at"] == kept


async def test_a_vault_that_is_away_is_awaited(rig: LinkRig) -> None:
    root = rig.config.roots[0].path
    away = root.with_name("away")
    root.rename(away)
    feeding = asyncio.create_task(rig.feed(rig.command("block", "organization", "HRDV")))
    await asyncio.sleep(0.3)
    assert not feeding.done()
    away.rename(root)
    await feeding
    assert [row["key"] for row in (await rig.rows(Index.ENTITIES)).values() if row["blocked"]] == ["hrdv"]
