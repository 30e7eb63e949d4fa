"""The cases of bad, odd and large input, through ingest and embed on the real engines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from indexers.domain import markdown
from indexers.domain.identity import Principal
from indexers.domain.lead import LEAD_SHARE, Vector
from indexers.opensearch.rows import DocumentRow, Index
from streams.agents.embed.reuse import own_vector
from streams.events import DocumentChanged, decode
from tests.agents import Rig, agent_config, opened_rig, reopened, vault_root
from tests.conftest import Stack
from tests.contract.test_agents_faults import spoiled
from tests.handlers import shipped_embedder

pytestmark = pytest.mark.engines


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as opened:
        yield opened


async def test_c06_empty_texts_are_known_and_have_no_vector(rig: Rig) -> None:
    notes = [rig.saved(f"n{i:02d}.md", f"# Note {i}\n\nword{i:02d}") for i in range(29)]
    odd = [
        rig.saved("zero.md", b""),
        rig.saved("blank.md", b" \n\n\t\n"),
        rig.saved("lantern.md", "---\ntitle: Lantern\n---\n"),
    ]
    await rig.index(*notes, *odd)
    await rig.index(rig.saved("photo.md", b"\x89PNG\x00\x00\xff\xfe"))
    rows = await rig.documents()
    reasons = {path: row["no_vector_reason"] for path, row in rows.items() if row["no_vector_reason"]}
    assert reasons == {"zero.md": "empty", "blank.md": "empty", "lantern.md": "empty", "photo.md": "not_text"}
    assert await rig.found("Lantern") == ["lantern.md"]
    assert rows["zero.md"]["title"] == "zero"
    assert sorted(await rig.chunk_counts()) == [f"n{i:02d}.md" for i in range(29)]
    assert [await rig.found(f"word{i:02d}") for i in range(29)] == [[f"n{i:02d}.md"] for i in range(29)]
    assert rig.computed == 29
    assert await rig.letters() == []
    assert await rig.verified() == {}


async def test_c07_a_large_file_is_capped_and_its_neighbour_is_found(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    """With the settings' defaults; memory: test_process_memory.py."""
    text = gauges()
    config = agent_config(stack, prefix, [vault_root(tmp_path)])
    cap = config.indexing.document_max_bytes
    async with opened_rig(config) as rig:
        (rig.root.path / "dump.md").write_bytes(text)
        await rig.feed(rig.told("dump.md", None), rig.saved("small.md", "a heliotrope"))
        assert await rig.found("heliotrope") == ["small.md"]
        row = (await rig.documents())["dump.md"]
        assert (row["size"], row["left_out_bytes"]) == (len(text), len(text) - cap)
        assert "truncated" in row["warnings"]
        told = {e.path: e for e in (decode(r.value, DocumentChanged) for r in await rig.announced())}
        spans = told["dump.md"].chunks
        texts = [text.decode()[chunk.start : chunk.end] for chunk in spans]
        assert max(shipped_embedder().count_tokens(texts)) <= config.indexing.chunk_max_tokens
        assert max(chunk.end for chunk in spans) <= cap
        assert len(told["small.md"].chunks) == 1


async def test_c07_what_is_kept_of_a_large_file_gets_its_vectors(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    config = agent_config(stack, prefix, [vault_root(tmp_path)], document_max_bytes=8_192)
    async with opened_rig(config) as rig:
        (rig.root.path / "dump.md").write_bytes(gauges())
        await rig.index(rig.told("dump.md", None), rig.saved("small.md", "a heliotrope"))
        counts = await rig.chunk_counts()
        assert counts["dump.md"] > 10
        assert counts["small.md"] == 1
        assert await rig.verified() == {}


def gauges() -> bytes:
    return " ".join(f"gauge {number:06d} reads low." for number in range(240_000)).encode()


async def test_c09_poison_between_good_events(rig: Rig) -> None:
    good = json.loads(rig.saved("b.md", "bravo").value or b"")
    await rig.index(
        rig.saved("a.md", "alpha"),
        rig.record(b"\x00\xffnot json"),
        rig.record(None),
        rig.record(b'{"tenant":"T1"}'),
        rig.record(json.dumps(good | {"size": "a lot"}).encode()),
        rig.record(json.dumps(good | {"schema_version": 9}).encode()),
        rig.record(json.dumps(good | {"kind": "renamed"}).encode()),
        rig.saved("c.md", "charlie"),
    )
    assert sorted(await rig.documents()) == ["a.md", "c.md"]
    letters = await rig.letters()
    classes = [
        "not_json",
        "null_value",
        "invalid_fields",
        "invalid_fields",
        "unknown_schema",
        "invalid_fields",
    ]
    assert [letter.error_class for letter in letters] == classes
    assert letters[0].value == b"\x00\xffnot json"
    assert (letters[0].topic, letters[0].partition) == (rig.config.topics.file_changes, 0)
    assert await rig.letters() == letters


async def test_c12_the_same_text_under_another_model(stack: Stack, prefix: str, tmp_path: Path) -> None:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as rig:
        record = rig.saved("moss.md", "# Moss\n\nIt grows. [[stone]]\n\n# Stone\n\nIt lies.")
        await rig.index(record)
        assert (rig.computed, await rig.chunk_counts()) == (2, {"moss.md": 2})
        other = agent_config(stack, prefix, [rig.root], chunk_max_tokens=64)
        async with reopened(rig, other, "e5-other") as later:
            await later.index(record)
            chunks = (await later.rows(Index.CHUNKS)).values()
            versions = {(row["model_id"], row["chunker_version"].rpartition("/")[2]) for row in chunks}
            assert versions == {("e5-other", "64")}
            assert (later.computed, len(chunks)) == (2, 2)
            again = later.computed
            await later.index(record)
            assert later.computed == again


async def test_memory_writes_become_files_and_their_echo_is_skipped(rig: Rig) -> None:
    from streams.memory import memory_write

    event = memory_write(
        rig.home,
        "The ferry Osprey docks at pier 9.",
        version=rig.clock.next(),
        title="Osprey",
        tags=["ferry"],
    )
    record = rig.written(event)
    await rig.index(record)
    file = rig.root.path / event.path
    row = (await rig.documents())[event.path]
    assert (row["title"], row["tags"], row["doc_type"], row["source"]) == (
        "Osprey", ["ferry"], "memory", "memory_tool",
    )  # fmt: skip
    assert "pier 9" in file.read_text()
    before = file.stat().st_ino
    echo = rig.told(event.path, file.read_bytes())
    await rig.index(record, echo)
    await rig.index(echo)
    await rig.index(record)
    assert (await rig.documents())[event.path]["version"] == event.version
    assert file.stat().st_ino == before
    assert rig.computed == 1
    assert await rig.verified() == {}


async def test_a_sight_of_the_old_bytes_does_not_discard_a_write_of_its_batch(rig: Rig) -> None:
    from msgspec.structs import replace

    from streams.memory import memory_write

    first = memory_write(rig.home, "old words", version=rig.clock.next())
    await rig.feed(rig.written(first))
    old = (rig.root.path / first.path).read_bytes()
    second = replace(first, event_id=first.event_id[:-1] + "f", version=rig.clock.next(), content="new words")
    await rig.feed(rig.written(second), rig.told(first.path, old))
    assert await rig.found("new") == [first.path]
    assert b"new words" in (rig.root.path / first.path).read_bytes()


async def test_a_reference_to_a_missing_file_is_a_deletion_and_an_unknown_vault_is_a_letter(rig: Rig) -> None:
    await rig.index(rig.saved("a.md", "alpha"), rig.saved("b.md", "bravo"))
    (rig.root.path / "a.md").unlink()
    foreign = rig.change("c.md", kind="upserted", agent_id="other")
    await rig.index(rig.told("a.md", None), foreign)
    assert sorted(await rig.documents()) == ["b.md"]
    assert [letter.error_class for letter in await rig.letters()] == ["unknown_vault"]
    assert await rig.verified() == {}


async def test_a_row_that_the_store_refuses_is_a_letter_and_the_neighbours_are_indexed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled(monkeypatch, lambda write: isinstance(write.row, DocumentRow) and write.row.path == "b.md")
    await rig.index(
        rig.saved("a.md", "alpha [[c]]"), rig.saved("b.md", "[[c]]"), rig.saved("c.md", "charlie")
    )
    assert sorted(await rig.documents()) == ["a.md", "c.md"]
    assert [letter.error_class for letter in await rig.letters()] == ["rejected_by_store"]
    assert await rig.edges() == {("a.md", "c", "c.md", False)}
    (rig.root.path / "b.md").unlink()
    assert await rig.verified() == {}


async def test_two_tenants_with_equal_paths_never_meet(stack: Stack, prefix: str, tmp_path: Path) -> None:
    ours, theirs = vault_root(tmp_path), vault_root(tmp_path, "theirs", tenant="umbra")
    async with opened_rig(agent_config(stack, prefix, [ours, theirs])) as rig:
        await rig.index(
            rig.saved("ledger.md", "[[vault-key]] zephyr", root=theirs),
            rig.saved("vault-key.md", "secret", root=theirs),
            rig.saved("ledger.md", "[[vault-key]]"),
        )
        assert await rig.edges() == {("ledger.md", "vault-key", None, False)}
        assert await rig.verified() == {}
        (theirs.path / "only-theirs.md").write_text("not indexed")
        report = await rig.verify()
        assert (report.clean, report.files, report.documents, report.links) == (True, 1, 1, 1)
        assert len(await rig.rows(Index.DOCUMENTS, "umbra")) == 2


async def test_a_vault_that_is_away_holds_what_needs_it_and_deletes_nothing(rig: Rig) -> None:
    await rig.index(rig.saved("a.md", "alpha"))
    away = rig.root.path.with_name("away")
    rig.root.path.rename(away)
    held = asyncio.create_task(rig.index(rig.told("a.md", None)))
    await asyncio.sleep(1)
    assert not held.done()
    assert sorted(await rig.documents()) == ["a.md"]
    (away / "a.md").write_text("changed while it was away")
    away.rename(rig.root.path)
    await asyncio.wait_for(held, 30)
    assert await rig.found("changed") == ["a.md"]
    assert await rig.verified() == {}


async def test_a_text_that_the_parser_can_not_take_is_a_letter(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug in the parser, put there: no text is known that does this."""
    parse = markdown.parse

    def fragile(text: str, *, path: str, frontmatter_max_bytes: int) -> markdown.ParsedNote:
        if "boom" in text:
            raise IndexError
        return parse(text, path=path, frontmatter_max_bytes=frontmatter_max_bytes)

    monkeypatch.setattr(markdown, "parse", fragile)
    await rig.index(rig.saved("a.md", "alpha"), rig.saved("b.md", "boom"), rig.saved("c.md", "charlie"))
    assert sorted(await rig.documents()) == ["a.md", "c.md"]
    assert [(x.error_class, x.reason) for x in await rig.letters()] == [("parse_failed", "b.md: IndexError")]


async def test_a_text_over_the_inline_limit_is_read_from_the_vault_by_embed(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    config = agent_config(stack, prefix, [vault_root(tmp_path)], inline_max_bytes=1_024)
    async with opened_rig(config) as rig:
        long = "\n\n".join(f"# Part {n}\n\n{'word ' * 100}{n}" for n in range(4))
        await rig.index(rig.saved("long.md", long))
        assert (await rig.chunk_counts(), rig.computed) == ({"long.md": 4}, 4)
        later = rig.saved("long.md", long + " changed")
        await rig.feed(later)
        (rig.root.path / "long.md").write_text(long + " changed again")
        await rig.embed_all()
        await rig.index(rig.saved("long.md", long + " changed again"))
        assert await rig.chunk_counts() == {"long.md": 4}
        assert await rig.verified() == {}


async def test_a_new_lead_is_in_every_chunk_and_embeds_nothing_else(rig: Rig) -> None:
    """Chunks are searched with their document's lead in them; what is reused is the vector of their own text."""

    async def stored() -> tuple[list[Vector], list[Vector]]:
        await rig.gate.refresh(Index.CHUNKS)
        principal = Principal.pipeline(rig.home.tenant_id)
        wanted = ["ordinal", "vector", "own_vector"]
        scan = rig.gate.scan(principal, Index.CHUNKS, {"match_all": {}}, fields=wanted)
        rows = sorted([row.source async for row in scan], key=lambda row: row["ordinal"])
        return [np.asarray(row["vector"], np.float32) for row in rows], [own_vector(row) for row in rows]

    note = "The {} is dredged.\n\n# Depth\n\nTwelve metres.\n\n# Tide\n\nFour metres."
    await rig.index(rig.saved("port.md", note.format("harbour")))
    _, own = await stored()
    assert rig.computed == 3
    await rig.index(rig.saved("port.md", note.format("canal")))
    assert rig.computed == 4
    searched, now = await stored()
    assert [vector.tobytes() for vector in now[1:]] == [vector.tobytes() for vector in own[1:]]
    assert np.abs(now[0] - own[0]).max() > 0.001
    for vector, alone in zip(searched, now, strict=True):
        assert np.allclose(vector, (alone + LEAD_SHARE * now[0]) / (1 + LEAD_SHARE), atol=1e-6)
    await rig.index(*rig.moved("port.md", "sub/port.md", note.format("canal")))
    assert (rig.computed, await rig.verified()) == (4, {})
    moved, carried = await stored()
    assert [v.tobytes() for v in (*moved, *carried)] == [v.tobytes() for v in (*searched, *now)]
