"""Ingest and embed over the real broker, node and model: any order of arrival, any number of times."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import Index
from streams.agents.config import open_gate
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack
from tests.store import gate_row

pytestmark = pytest.mark.engines


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as opened:
        yield opened


async def test_a_note_is_found_and_has_vectors_and_edges(rig: Rig) -> None:
    await rig.index(
        rig.saved("plan.md", "# Plan\n\nThe crane of [[harbour]] lifts.\n"),
        rig.saved("harbour.md", "# Harbour\n\nSee INC-2041 and [plan](plan.md).\n"),
    )
    assert await rig.found("crane") == ["plan.md"]
    assert await rig.found("INC-2041") == ["harbour.md"]
    assert await rig.chunk_counts() == {"plan.md": 1, "harbour.md": 1}
    assert await rig.edges() == {
        ("plan.md", "harbour", "harbour.md", False),
        ("harbour.md", "plan.md", "plan.md", False),
    }
    assert await rig.verified() == {}


async def test_rows_that_an_agent_writes_are_counted(rig: Rig) -> None:
    context = rig.ingest.context
    write = RowWrite(
        principal=rig.home.principal,
        index=Index.GATE,
        row_id="r",
        action="index",
        row=gate_row(rig.home),
        version=1,
    )
    async with open_gate(rig.config, context) as gate:
        await gate.write([write])
    sent = context.metrics.registry.get_sample_value("hopline_store_rows_total", {"outcome": "sent"})
    assert sent == 1.0


async def test_c02_a_dangling_link_resolves_when_its_target_appears_and_dangles_when_it_goes(
    rig: Rig,
) -> None:
    await rig.feed(
        rig.saved("plan.md", "see [[overview (harbour crane)]]"),
        rig.saved("overview of tides.md", "tides"),
        rig.saved("crane parts.md", "parts"),
    )
    assert await rig.edges() == {("plan.md", "overview (harbour crane)", None, False)}
    await rig.feed(rig.saved("overview (harbour crane).md", "here"))
    edge = ("plan.md", "overview (harbour crane)", "overview (harbour crane).md", False)
    assert await rig.edges() == {edge}
    await rig.feed(rig.removed("overview (harbour crane).md"))
    assert await rig.edges() == {("plan.md", "overview (harbour crane)", None, False)}
    await rig.embed_all()
    assert await rig.verified() == {}


async def test_c05_a_file_that_shrinks_leaves_nothing_behind(rig: Rig) -> None:
    sections = "".join(f"# {w}\n\n{w} tree, see [[{w}]].\n\n" for w in ("alder", "birch", "cedar"))
    await rig.index(rig.saved("log.md", sections))
    assert await rig.chunk_counts() == {"log.md": 3}
    await rig.index(rig.saved("log.md", "# alder\n\nalder tree, see [[alder]].\n\n"))
    assert await rig.chunk_counts() == {"log.md": 1}
    assert await rig.found("birch") == await rig.found("cedar") == []
    assert await rig.edges() == {("log.md", "alder", None, False)}
    assert await rig.verified() == {}


async def test_redelivery_of_everything_changes_nothing(rig: Rig) -> None:
    records = [
        rig.saved("a.md", "# A\n\nto [[b]]"),
        rig.saved("b.md", "---\naliases: [bee]\n---\nback to [[a]]"),
        rig.saved("c.md", "[[bee]] and [[gone]]"),
        rig.saved("gone.md", "soon"),
    ]
    deletion = rig.removed("gone.md")
    await rig.feed(*records)
    await rig.feed(deletion)
    said = await rig.announced()
    await rig.embed_records(said)
    before = [await rig.rows(index) for index in Index]
    computed = rig.computed
    await rig.feed(deletion, *records)
    await rig.feed(*records[::-1])
    assert await rig.announced() == []
    await rig.embed_records(said)
    assert [await rig.rows(index) for index in Index] == before
    assert rig.computed == computed
    assert await rig.verified() == {}


async def test_an_older_event_does_not_bring_back_what_was_deleted(rig: Rig) -> None:
    first = rig.saved("a.md", "one [[b]]")
    second = rig.saved("a.md", "two [[b]]")
    deletion = rig.removed("a.md")
    await rig.feed(first)
    said = await rig.announced()
    await rig.feed(deletion)
    await rig.feed(second)
    await rig.embed_all()
    await rig.embed_records(said)
    assert (await rig.documents(), await rig.edges(), await rig.chunk_counts()) == ({}, set(), {})
    [tombstone] = (await rig.rows(Index.DOCUMENTS)).values()
    assert (tombstone["title"], tombstone["terms"], tombstone["deleted"]) == ("", [], True)
    assert await rig.found("one two") == []
    assert await rig.verified() == {}
