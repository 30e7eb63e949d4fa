"""Links and moves in any order of arrival, by one worker or two; what a crash leaves is done again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index
from streams.batch import Record
from tests.agents import Rig, agent_config, opened_rig, reopened, vault_root
from tests.conftest import Stack

pytestmark = pytest.mark.engines

NOTES = {
    "a.md": "[[b]] [[x/b]] [[nobody]] ![[c]]",
    "x/b.md": "---\naliases: [bee, Beatrice]\n---\n[[a]] [up](../c.md)",
    "y/b.md": "[[b]] [[bee]]",
    "c.md": "[[bee]] [[Beatrice]] [[b]]",
    "z/deep/d.md": "[[b]] [[e]] [[old name]]",
    "e.md": "---\naliases: [old name, d]\n---\n[[d]]",
}
EDGES = {
    ("a.md", "b", "x/b.md", True),
    ("a.md", "x/b", "x/b.md", False),
    ("a.md", "nobody", None, False),
    ("a.md", "c", "c.md", False),
    ("x/b.md", "a", "a.md", False),
    ("x/b.md", "../c.md", "c.md", False),
    ("y/b.md", "b", "y/b.md", True),
    ("y/b.md", "bee", "x/b.md", False),
    ("c.md", "bee", "x/b.md", False),
    ("c.md", "Beatrice", "x/b.md", False),
    ("c.md", "b", "x/b.md", True),
    ("z/deep/d.md", "b", "x/b.md", True),
    ("z/deep/d.md", "e", "e.md", False),
    ("z/deep/d.md", "old name", "e.md", False),
    ("e.md", "d", "z/deep/d.md", False),
}


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with opened_rig(agent_config(stack, prefix, [vault_root(tmp_path)])) as opened:
        yield opened


async def edges_of(rig: Rig, agent: str) -> set[tuple[str, str, str | None, bool]]:
    documents = (await rig.rows(Index.DOCUMENTS)).values()
    links = (await rig.rows(Index.LINKS)).values()
    paths = {row["doc_id"]: row["path"] for row in documents if row["agent_id"] == agent}
    return {
        (row["from_path"], row["target"], paths.get(row["to_doc_id"]), row["ambiguous"])
        for row in links
        if row["agent_id"] == agent
    }


def cut(records: Sequence[Record], rnd: random.Random) -> list[Sequence[Record]]:
    batches: list[Sequence[Record]] = []
    at = 0
    while at < len(records):
        size = rnd.randint(1, 3)
        batches.append(records[at : at + size])
        at += size
    return batches


async def test_shuffled_arrival_gives_the_same_edges(stack: Stack, prefix: str, tmp_path: Path) -> None:
    """Two workers at once; documents come, change their aliases, go and come back in random order."""
    agents = [f"agent{n}" for n in range(5)]
    roots = [vault_root(tmp_path, agent, agent=agent, scope="personal") for agent in agents]
    async with opened_rig(agent_config(stack, prefix, roots)) as rig, reopened(rig, rig.config) as second:
        for seed, root in enumerate(roots):
            rnd = random.Random(seed)  # noqa: S311 - reproducible order
            earlier = [rig.saved(path, "[[bee]] [[b]] [[c]]", root=root) for path in NOTES]
            gone = [rig.removed(path, root=root) for path in rnd.sample(sorted(NOTES), 3)]
            last = [rig.saved(path, text, root=root) for path, text in NOTES.items()]
            records = earlier + gone + last
            rnd.shuffle(records)
            half = len(records) // 2
            await asyncio.gather(feed(rig, cut(records[:half], rnd)), feed(second, cut(records[half:], rnd)))
            assert await edges_of(rig, root.agent) == EDGES, f"seed {seed}"


async def feed(rig: Rig, batches: Sequence[Sequence[Record]]) -> None:
    for batch in batches:
        await rig.feed(*batch)


async def test_links_lead_within_the_scope_of_their_author_or_a_wider_one(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    shared = vault_root(tmp_path, "shared")
    personal = vault_root(tmp_path, "personal", scope="personal")
    team = vault_root(tmp_path, "team", scope="team", team="blue")
    other = vault_root(tmp_path, "other", scope="personal", agent="bob")
    async with opened_rig(agent_config(stack, prefix, [shared, personal, team, other])) as rig:
        await rig.feed(
            rig.saved("s.md", "[[p]] [[t]] [[o]]"),
            rig.saved("p.md", "[[s]] [[t]] [[o]]", root=personal),
            rig.saved("t.md", "[[s]] [[p]]", root=team),
        )
        await rig.feed(rig.saved("o.md", "[[s]] [[p]]", root=other))
        assert await rig.edges() == {
            ("s.md", "p", None, False),
            ("s.md", "t", None, False),
            ("s.md", "o", None, False),
            ("p.md", "s", "s.md", False),
            ("p.md", "t", None, False),
            ("p.md", "o", None, False),
            ("t.md", "s", "s.md", False),
            ("t.md", "p", None, False),
            ("o.md", "s", "s.md", False),
            ("o.md", "p", None, False),
        }


@pytest.mark.parametrize("order", ["together", "deletion first", "creation first", "embed reversed"])
async def test_a_move_embeds_nothing_again(rig: Rig, order: str) -> None:
    text = "# Draft\n\nThe bollard murmured.\n\n# Coda\n\nIt ceased."
    await rig.index(rig.saved("plan.md", "[[later]]"), rig.saved("draft.md", text))
    computed = rig.computed
    deletion, creation = rig.moved("draft.md", "sub/later.md", text)
    match order:
        case "together":
            await rig.index(deletion, creation)
        case "deletion first":
            await rig.index(deletion)
            await rig.index(creation)
        case "creation first":
            await rig.index(creation)
            await rig.index(deletion)
        case _:
            await rig.feed(deletion)
            said_of_deletion = await rig.announced()
            await rig.feed(creation)
            await rig.embed_all()
            await rig.embed_records(said_of_deletion)
    assert rig.computed == computed
    assert await rig.chunk_counts() == {"plan.md": 1, "sub/later.md": 2}
    assert await rig.edges() == {("plan.md", "later", "sub/later.md", False)}
    row = (await rig.documents())["sub/later.md"]
    assert row["moved_from"] == rig.home.document("draft.md").doc_id
    assert await rig.verified() == {}


@pytest.mark.parametrize(
    "embedding", ["each", "at the end", "at the end, backwards", "one by one, backwards"]
)
@pytest.mark.parametrize("order", list(permutations(["first", "gone", "again"])))
async def test_a_move_that_is_told_twice_keeps_its_vectors(
    rig: Rig, order: tuple[str, ...], embedding: str
) -> None:
    """A watcher that started anew tells of the deletion late, and of the creation again."""
    text = "# Draft\n\nThe bollard murmured.\n\n# Coda\n\nIt ceased."
    await rig.index(rig.saved("a.md", text))
    computed = rig.computed
    told = {
        "first": rig.saved("b.md", text, moved_from="a.md"),
        "gone": rig.removed("a.md", moved_to="b.md"),
        "again": rig.told("b.md", text.encode()),
    }
    said: list[Record] = []
    for name in order:
        await rig.feed(told[name])
        if embedding == "each":
            await rig.embed_all()
    if embedding != "each":
        said = await rig.announced()
        said = said if embedding == "at the end" else said[::-1]
    for record in said if embedding.startswith("one") else ():
        await rig.embed_records([record])
    if not embedding.startswith("one"):
        await rig.embed_records(said)
    version = (await rig.documents())["b.md"]["version"]
    assert [row["version"] for row in (await rig.rows(Index.CHUNKS)).values()] == [version] * 2
    assert (rig.computed, await rig.verified()) == (computed, {})


@pytest.mark.parametrize("text", ["# One\n\nalpha", "", "# One\n\nbravo"])
async def test_a_move_told_after_its_creation_leaves_no_row_of_the_old_length(rig: Rig, text: str) -> None:
    """The new file is shorter, empty, or stood there before."""
    await rig.index(rig.saved("a.md", "# One\n\nalpha\n\n# Two\n\nbravo"))
    await rig.index(rig.saved("b.md", text, moved_from="a.md"))
    await rig.index(rig.removed("a.md", moved_to="b.md"))
    assert await rig.verified() == {}


async def test_a_file_moved_over_one_of_the_same_text_leaves_its_rows(rig: Rig) -> None:
    await rig.index(rig.saved("b.md", "# One\n\nalpha"))
    await rig.index(rig.saved("a.md", "# One\n\nalpha"))
    await rig.index(*rig.moved("a.md", "b.md", "# One\n\nalpha"))
    assert (rig.computed, await rig.verified()) == (1, {})


async def test_a_file_moved_where_one_was_deleted_just_now_embeds_nothing_again(rig: Rig) -> None:
    await rig.index(rig.saved("a.md", "# One\n\nalpha"))
    await rig.index(rig.saved("b.md", "# Two\n\nbravo"))
    await rig.index(rig.removed("b.md"))
    for record in rig.moved("a.md", "b.md", "# One\n\nalpha"):
        await rig.index(record)
    assert (rig.computed, await rig.verified()) == (2, {})


async def test_many_moves_of_a_batch_take_no_more_requests_than_one(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"n{n}.md": f"# Note {n}\n\nThe quay has {n} bollards." for n in range(8)}
    await rig.index(*(rig.saved(path, text) for path, text in texts.items()))
    computed = rig.computed
    calls = {name: counted(monkeypatch, name) for name in ("write", "search_many")}
    requests: list[dict[str, int]] = []
    for moved in (["n0.md"], sorted(texts)[1:]):
        deletions = [rig.moved(path, f"sub/{path}", texts[path])[0] for path in moved]
        await rig.feed(*deletions)
        said = await rig.announced()
        before = {name: len(made) for name, made in calls.items()}
        await rig.embed_records(said)
        requests.append({name: len(made) - before[name] for name, made in calls.items()})
    assert requests[0] == requests[1]
    await rig.index(*(rig.told(f"sub/{path}", text.encode()) for path, text in texts.items()))
    assert (rig.computed, await rig.verified()) == (computed, {})


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """One entry for each call of the gate's method from here on."""
    calls: list[str] = []
    original = getattr(Gate, name)

    async def call(gate: Gate, *args: Any) -> Any:
        calls.append(name)
        return await original(gate, *args)

    monkeypatch.setattr(Gate, name, call)
    return calls


async def test_a_file_that_is_moved_and_cut_or_deleted_leaves_no_chunk(rig: Rig) -> None:
    text = "# One\n\nalpha\n\n# Two\n\nbravo"
    await rig.index(rig.saved("a.md", text), rig.saved("b.md", text.replace("alpha", "gamma")))
    first, second = rig.moved("a.md", "a2.md", "# One\n\nalpha")
    await rig.index(second)
    await rig.index(first)
    assert await rig.chunk_counts() == {"a2.md": 1, "b.md": 2}
    gone, come = rig.moved("b.md", "b2.md", text)
    last = rig.removed("b2.md")
    await rig.feed(gone)
    said = await rig.announced()
    await rig.feed(come)
    await rig.feed(last)
    await rig.embed_all()
    await rig.embed_records(said)
    assert await rig.chunk_counts() == {"a2.md": 1}
    assert await rig.verified() == {}


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


async def test_c11_a_batch_that_dies_anywhere_is_done_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends at its n-th request to the store, for every n; then the batch comes again."""
    original = Gate.write
    for n in range(12):
        texts = {path: f"{text}\n\nround {n}" for path, text in NOTES.items()}
        records = [rig.saved(path, text) for path, text in texts.items()]
        await dies_at(monkeypatch, n, lambda records=records: rig.index(*records))
        monkeypatch.setattr(Gate, "write", original)
        await rig.index(*records)
        assert await edges_of(rig, "ada") == EDGES, f"died at request {n}"
    await rig.embed_all()
    assert await rig.verified() == {}
    said_at = {row["version"] for row in (await rig.rows(Index.DOCUMENTS)).values()}
    assert said_at == {row["version"] for row in (await rig.rows(Index.GATE)).values()}


async def dies_at(monkeypatch: pytest.MonkeyPatch, n: int, work: Any) -> None:
    left = n
    original = Gate.write

    async def write(gate: Gate, writes: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return await original(gate, writes)

    monkeypatch.setattr(Gate, "write", write)
    try:
        await work()
    except* Killed:  # alone, or out of a task group
        pass


async def test_a_worker_that_lost_its_partition_leaves_nothing_of_its_older_version(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batch was planned before the new owner wrote a newer version, and is written after."""
    old = rig.saved("a.md", "# One\n\n[[b]]\n\n# Two\n\n[[c]]")
    new = rig.saved("a.md", "[[d]]")
    original = Gate.write
    first = True

    async def write(gate: Gate, writes: Any) -> Any:
        nonlocal first
        if first:
            first = False
            await rig.feed(new)
        return await original(gate, writes)

    monkeypatch.setattr(Gate, "write", write)
    await rig.feed(old)
    assert await rig.edges() == {("a.md", "d", None, False)}
    await rig.embed_all()
    assert await rig.chunk_counts() == {"a.md": 1}
    assert await rig.verified() == {}


async def test_answers_of_many_pages_are_read_whole(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of two rows: many links to one name, many candidates, many chunks of a file that shrinks."""
    monkeypatch.setattr("indexers.opensearch.find.PAGE_ROWS", 2)
    await rig.feed(*(rig.saved(f"n{i}.md", "[[hub]]") for i in range(7)))
    await rig.index(rig.saved("hub.md", "".join(f"# H{i}\n\ntext {i}\n\n" for i in range(7))))
    assert await rig.edges() == {(f"n{i}.md", "hub", "hub.md", False) for i in range(7)}
    await rig.index(*(rig.saved(f"{folder}/hub.md", "# H1\n\ntext 1") for folder in "abc"))
    assert await rig.edges() == {(f"n{i}.md", "hub", "hub.md", False) for i in range(7)}
    deletion, creation = rig.moved("hub.md", "z/hub.md", "# H1\n\ntext 1")
    await rig.index(creation)
    await rig.index(deletion)
    assert await rig.edges() == {(f"n{i}.md", "hub", "a/hub.md", True) for i in range(7)}
    counts = await rig.chunk_counts()
    assert {path: counts[path] for path in counts if "hub" in path} == {
        f"{folder}/hub.md": 1 for folder in "abcz"
    }
    assert rig.computed == 8
    assert await rig.verified() == {}
