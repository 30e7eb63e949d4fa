"""`verify` finds each fault in the index; `rebuild` restores it from the vault alone, twice the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, Principal, chunk_id
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import REBUILT, ChunkRow, DocumentRow, GateRow, Index, LinkRow, OwnedRow
from indexers.settings import VaultRoot
from indexers.vault.journal import Journal
from indexers.verify.digest import content_digest
from streams.event_fields import new_event_fields
from streams.events import CurationCommand, encode
from streams.rebuild import AGENTS
from streams.versions import VersionClock
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.conftest import Stack

pytestmark = pytest.mark.engines

LATER = 1 << 60
TYPES: dict[Index, type[OwnedRow]] = {
    Index.DOCUMENTS: DocumentRow,
    Index.CHUNKS: ChunkRow,
    Index.LINKS: LinkRow,
    Index.GATE: GateRow,
}


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as opened:
        await opened.index(
            opened.saved("a.md", "# A\n\nalpha [[b]] [[nobody]]\n\n# More\n\nmore"),
            opened.saved("b.md", "---\naliases: [bee]\n---\n# B\n\nbravo"),
            opened.saved("x/c.md", "one [[a]]"),
            opened.saved("y/c.md", "two"),
        )
        yield opened


async def put(rig: Rig, index: Index, row_id: str, **changes: Any) -> None:
    """One row altered behind the agents' back."""
    stored = (await rig.rows(index))[row_id]
    await write(rig, index, row_id, msgspec.convert(stored | changes, TYPES[index]))


async def write(rig: Rig, index: Index, row_id: str, row: OwnedRow | None) -> None:
    principal = Principal.pipeline(rig.home.tenant_id)
    action: Any = "delete" if row is None else "index"
    change = RowWrite(
        principal=principal,
        index=index,
        row_id=row_id,
        action=action,
        row=row,
        version=rig.clock.next() + LATER,
    )
    [result] = await rig.gate.write([change])
    assert result.status == "applied", result


async def drop(rig: Rig, index: Index, row_id: str) -> None:
    await write(rig, index, row_id, None)


async def link_id_of(rig: Rig, target: str) -> str:
    [row_id] = [i for i, row in (await rig.rows(Index.LINKS)).items() if row["target"] == target]
    return row_id


async def test_an_index_that_says_what_the_vault_says_is_clean(rig: Rig) -> None:
    report = await rig.verify()
    assert report.clean
    counts = (report.files, report.documents, report.chunks, report.links, report.dangling, report.tombstones)
    assert counts == (4, 4, 5, 3, 1, 0)
    await rig.index(rig.removed("y/c.md"))
    assert (await rig.verify()).tombstones == 1


async def test_verify_finds_each_fault_of_a_document(rig: Rig) -> None:
    a, b = rig.home.document("a.md").doc_id, rig.home.document("b.md").doc_id
    (rig.root.path / "new.md").write_text("not sent")
    assert await rig.verified() == {"missing_document": 1}
    (rig.root.path / "new.md").unlink()
    (rig.root.path / "b.md").write_text("changed, not sent")
    assert {"stale_document", "stale_gate"} <= set(await rig.verified())
    (rig.root.path / "b.md").write_text("---\naliases: [bee]\n---\n# B\n\nbravo")
    (rig.root.path / "y/c.md").unlink()
    assert await rig.verified() == {"orphan_document": 1}
    (rig.root.path / "y/c.md").write_text("two")
    await put(rig, Index.GATE, a, content_hash="sha256:00")
    await drop(rig, Index.GATE, b)
    assert await rig.verified() == {"stale_gate": 1, "missing_gate": 1}
    stored = (await rig.rows(Index.GATE))[a]
    await write(rig, Index.GATE, "elsewhere", msgspec.convert(stored | {"doc_id": "nowhere"}, GateRow))
    assert (await rig.verified())["orphan_gate"] == 1


async def test_verify_finds_each_fault_of_a_chunk(rig: Rig) -> None:
    a = rig.home.document("a.md").doc_id
    first, second = chunk_id(a, 0), chunk_id(a, 1)
    stored = (await rig.rows(Index.CHUNKS))[first]
    await put(rig, Index.CHUNKS, first, chunk_hash="sha256:00", vector=[0.1] * 384)
    assert await rig.verified() == {"stale_chunk": 1}
    await drop(rig, Index.CHUNKS, second)
    assert await rig.verified() == {"stale_chunk": 1, "missing_chunk": 1}
    vector = {"vector": [0.1] * 384}
    await write(
        rig, Index.CHUNKS, chunk_id(a, 7), msgspec.convert(stored | vector | {"ordinal": 7}, ChunkRow)
    )
    await write(rig, Index.CHUNKS, "twin", msgspec.convert(stored | vector, ChunkRow))
    foreign = stored | vector | {"doc_id": "nowhere"}
    await write(rig, Index.CHUNKS, "foreign", msgspec.convert(foreign, ChunkRow))
    assert await rig.verified() == {
        "stale_chunk": 1, "missing_chunk": 1, "orphan_chunk": 2, "duplicate_row": 1,
    }  # fmt: skip
    without = {key: value for key, value in stored.items() if key != "vector"}
    await write(rig, Index.CHUNKS, first, msgspec.convert(without, ChunkRow))
    assert (await rig.verified())["missing_vector"] == 1


async def test_verify_finds_each_fault_of_a_link(rig: Rig) -> None:
    to_b, to_a, to_nobody = [await link_id_of(rig, target) for target in ("b", "a", "nobody")]
    await put(rig, Index.LINKS, to_b, to_doc_id=None, resolved=False)
    await put(rig, Index.LINKS, to_a, ambiguous=True)
    await put(rig, Index.LINKS, to_nobody, to_doc_id=rig.home.document("b.md").doc_id, resolved=True)
    assert await rig.verified() == {"dangling_link": 1, "wrong_ambiguity": 1, "wrong_link": 1}
    stored = (await rig.rows(Index.LINKS))[to_b]
    await drop(rig, Index.LINKS, to_a)
    await write(rig, Index.LINKS, "older", msgspec.convert(stored | {"version": 1}, LinkRow))
    await write(rig, Index.LINKS, "foreign", msgspec.convert(stored | {"from_doc_id": "nowhere"}, LinkRow))
    found = await rig.verified()
    assert (found["missing_link"], found["stale_link"], found["orphan_link"]) == (1, 1, 1)


async def test_the_digest_sees_content_and_nothing_else(rig: Rig) -> None:
    principal = Principal.pipeline(rig.home.tenant_id)
    before = await content_digest(rig.gate, principal)
    nothing = dict.fromkeys(map(str, REBUILT), 0)
    assert dict(before.rows) == nothing | {"documents": 4, "chunks": 5, "links": 3, "gate": 4}
    a = rig.home.document("a.md").doc_id
    await put(rig, Index.DOCUMENTS, a, version=7, indexed_at="2000-01-01T00:00:00Z", event_id="other")
    assert await content_digest(rig.gate, principal) == before
    await put(rig, Index.DOCUMENTS, a, title="Another")
    assert await content_digest(rig.gate, principal) != before


@contextlib.contextmanager
def running_agents(environment: dict[str, str], folder: Path) -> Iterator[None]:
    import subprocess

    processes = []
    for agent in AGENTS:
        with (folder / f"{agent}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "hopline", "agent", agent],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(40) for process in processes]
        assert codes == [0] * len(AGENTS), [(folder / f"{a}.log").read_text()[-2000:] for a in AGENTS]


async def command(environment: dict[str, str], *arguments: str) -> tuple[int, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hopline",
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 180)
    assert out, err.decode()
    return process.returncode or 0, json.loads(out)


def merged_incidents(root: VaultRoot) -> CurationCommand:
    owner = EntityNamespace.of(root.namespace).namespace
    return CurationCommand(
        **new_event_fields(owner),
        version=VersionClock().next(),
        kind="merge",
        label="incident",
        keys=[name_key("INC-2041", "incident"), name_key("INC-2042", "incident")],
        by="ada",
    )


async def incidents(rig: Rig) -> set[tuple[str, int, str]]:
    """Name shown, mention count, key of the entity."""
    rows = [row for row in (await rig.rows(Index.ENTITIES)).values() if row["label"] == "incident"]
    keys = {row["name_id"]: row["key"] for row in rows}
    return {(row["name"], row["mention_count"], keys[row["entity_id"]]) for row in rows}


async def test_rebuild_restores_the_index_and_two_rebuilds_are_equal(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    """Real agents as processes; also: `hopline write`, and the exit code of `hopline verify`.

    What a rebuild of one root leaves is what a rebuild of everything makes.

    Names of the shared namespace have two authors, and a curator merged two of them.
    """
    ours, theirs = vault_root(tmp_path), vault_root(tmp_path, "theirs", tenant="umbra")
    bobs = vault_root(tmp_path, "bobs", agent="bob")
    vaults = [root.model_dump(mode="json") for root in (ours, theirs, bobs)]
    environment = {
        **os.environ,
        "HOPLINE_PREFIX": prefix,
        "HOPLINE_KAFKA__BOOTSTRAP_SERVERS": stack.kafka_servers,
        "HOPLINE_OPENSEARCH__URL": stack.opensearch_url,
        "HOPLINE_LOCAL__DATA_DIR": str(tmp_path / "data"),
        "HOPLINE_VAULTS": json.dumps(vaults),
    }
    for root in (ours, theirs):
        for number in range(12):
            (root.path / f"n{number}.md").write_text(
                f"# N{number}\n\nSee [[n{number + 1}]] and [[n{number - 1}]]."
            )
    for number in range(3):
        (bobs.path / f"b{number}.md").write_text(f"# B{number}\n\nINC-2041 and ORA-0155{number}, again.")
    (ours.path / "n0.md").write_text("# N0\n\nINC-2041 and INC-2042 were one.")
    merge = merged_incidents(bobs)
    Journal(bobs.path, "curation.jsonl").append({merge.event_id: encode(merge)})
    async with opened_rig(agent_config(stack, prefix, [ours, theirs]), ensure=False) as rig:
        with running_agents(environment, tmp_path):
            code, done = await command(environment, "rebuild", "--yes", "--json")
            assert (code, done["clean"], done["sent"]) == (0, True, {"main": 12, "theirs": 12, "bobs": 3})
            first = await command(environment, "verify", "--digest", "--json")
            assert first[0] == 0
            assert await incidents(rig) == {("INC-2041", 4, "inc 2041"), ("INC-2042", 0, "inc 2041")}
            written = await command(
                environment, "write", "Osprey docks.", "--title", "Osprey", "--root", "main", "--json"
            )
            assert (await command(environment, "rebuild", "--yes", "--json", "--root", "bobs"))[0] == 0
            second = await command(environment, "verify", "--digest", "--json")
            assert second[1]["digests"]["umbra"] == first[1]["digests"]["umbra"]
            assert second[1]["digests"]["acme"] != first[1]["digests"]["acme"]
            assert written[1]["path"] in await rig.documents()
            (await command(environment, "rebuild", "--yes", "--json"))
            third = await command(environment, "verify", "--digest", "--json")
            assert third == second
        (ours.path / "n3.md").unlink()
        code, report = await command(environment, "verify", "--root", "main", "--json")
        assert (code, report["clean"], report["roots"][0]["counts"]) == (1, False, {"orphan_document": 1})
        assert (await command(environment, "verify", "--root", "theirs", "--json"))[0] == 0
