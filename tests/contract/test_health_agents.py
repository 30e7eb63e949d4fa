"""Health, place in a session and what supersedes a note: from the file to the rows of document and chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import FACT_FIELDS, ChunkRow, Index
from indexers.planning import IndexVersions
from indexers.settings import HealthRule, HealthSettings, IndexingSettings
from streams.agents.ingest.plan import Planner
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack

pytestmark = pytest.mark.engines

TURN = (
    "---\ntype: memory\nsource: memory_tool\nsession: Crane talk\nposition: 3\nspeaker: Ada\n"
    "created: 2031-04-05T10:00:00\nexpires_at: 2032-01-01\nsuperseded_by: talks/later\n---\n{}\n"
)
OWN = ("health_reasons", "speaker")


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as opened:
        yield opened


def with_rules(rig: Rig, health: HealthSettings) -> None:
    """As if ingest had been started anew with these rules."""
    indexing = IndexingSettings(health=health)
    rig.config = replace(rig.config, indexing=indexing)
    counter = rig.ingest.planner.counter
    versions = IndexVersions.of(counter, rig.ingest.planner.versions.model_id, indexing)
    rig.ingest = replace(rig.ingest, planner=Planner(counter=counter, settings=indexing, versions=versions))


async def facts(rig: Rig, path: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Of the document's row, and of each of its chunks'."""
    document = (await rig.documents())[path]
    chunks = [c for c in (await rig.rows(Index.CHUNKS)).values() if c["doc_id"] == document["doc_id"]]
    return (
        {name: document[name] for name in (*FACT_FIELDS, *OWN)},
        [{name: chunk[name] for name in FACT_FIELDS} for chunk in chunks],
    )


async def test_a_turn_of_a_conversation_and_its_chunk_say_the_same_also_after_a_move(rig: Rig) -> None:
    later = rig.home.document("talks/later.md").doc_id
    text = TURN.format("See PR #12 of the crane.")
    await rig.index(rig.saved("talks/3.md", text))
    document, chunks = await facts(rig, "talks/3.md")
    assert document == {
        "doc_type": "memory",
        "source": "memory_tool",
        "health": 0.1,
        "session": "Crane talk",
        "position": 3,
        "turn": "Crane talk#3",
        "superseded_by": later,
        "created_at": "2031-04-05T10:00:00",
        "updated_at": document["updated_at"],
        "valid_from": None,
        "expires_at": "2032-01-01",
        "health_reasons": ["short:-0.4", "reference:-0.4", "untagged:-0.15"],
        "speaker": "Ada",
    }
    assert chunks == [{name: document[name] for name in FACT_FIELDS}]
    assert await rig.verified() == {}

    await rig.index(*rig.moved("talks/3.md", "talks/three.md", text))
    after, chunks = await facts(rig, "talks/three.md")
    assert {**after, "updated_at": document["updated_at"]} == document
    assert chunks == [{name: after[name] for name in FACT_FIELDS}]
    assert await rig.verified() == {}


async def test_changed_rules_index_again_without_the_model_and_verify_sees_them(rig: Rig) -> None:
    record = rig.saved("talks/3.md", TURN.format("The crane of pier 9 lifts twelve tons."))
    await rig.index(record)
    computed = rig.computed
    document, chunks = await facts(rig, "talks/3.md")
    assert (document["health"], document["health_reasons"]) == (0.85, ["untagged:-0.15"])

    with_rules(rig, HealthSettings(untagged=HealthRule(penalty=0.5)))
    assert await rig.verified() == {"stale_document": 1, "stale_gate": 1}
    await rig.index(record)
    document, chunks = await facts(rig, "talks/3.md")
    assert (document["health"], document["health_reasons"]) == (0.5, ["untagged:-0.5"])
    assert [chunk["health"] for chunk in chunks] == [0.5]
    assert rig.computed == computed
    assert await rig.verified() == {}
    await rig.feed(record)
    assert await rig.announced() == []

    [(row_id, stored)] = (await rig.rows(Index.CHUNKS)).items()
    other = stored | {"health": 1.0, "turn": "Crane talk#4", "vector": [0.1] * 384}
    write = RowWrite(
        principal=rig.home.principal,
        index=Index.CHUNKS,
        row_id=row_id,
        action="index",
        row=msgspec.convert(other, ChunkRow),
        version=stored["version"],
    )
    await rig.gate.write([write])
    report = await rig.verify()
    assert [(f.kind, f.detail) for f in report.findings] == [
        ("stale_chunk", "chunk 0 differs in health, turn")
    ]
