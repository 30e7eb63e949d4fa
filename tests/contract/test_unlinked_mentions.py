"""Titles are names: edges equal a plain matcher's, whatever came first, changed, went or grew common meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from indexers.opensearch.rows import Index
from indexers.settings import VaultRoot
from streams.batch import Record
from tests.agents import Rig, agent_config, opened_rig, reopened, vault_root
from tests.conftest import Stack
from tests.mentions import Doc, Mention, mentions

pytestmark = pytest.mark.engines
CAP = 3


@pytest.fixture
async def rig(stack: Stack, prefix: str, tmp_path: Path) -> AsyncIterator[Rig]:
    config = agent_config(stack, prefix, [vault_root(tmp_path)], name_in_degree_max=CAP)
    async with opened_rig(config) as opened:
        yield opened


async def edges(rig: Rig) -> set[Mention]:
    paths = {row["doc_id"]: row["path"] for row in (await rig.rows(Index.DOCUMENTS)).values()}
    rows = [r for r in (await rig.rows(Index.LINKS)).values() if r["link_type"] == "unlinked_mention"]
    return {
        (
            row["from_path"],
            row["target_key"],
            paths[row["to_doc_id"]],
            row["ambiguous"],
            tuple((place["start"], place["end"]) for place in row["occurrences"]),
        )
        for row in rows
        if row["to_doc_id"] is not None
    }


async def aims(rig: Rig) -> set[tuple[str, str, str]]:
    return {(start, name, end) for start, name, end, _, _ in await edges(rig)}


def expected(roots: Sequence[VaultRoot], cap: int = CAP) -> set[Mention]:
    docs = [
        Doc.of(root.namespace, file.relative_to(root.path).as_posix(), file.read_text(encoding="utf-8"))
        for root in roots
        for file in sorted(root.path.rglob("*.md"))
    ]
    return mentions(docs, cap=cap)


async def test_text_before_name_and_name_before_text(rig: Rig) -> None:
    await rig.feed(
        rig.saved("a.md", "# Log\n\nThe payments team's rota; 결제팀은 `Payments team` [[Payments team]].")
    )
    assert await edges(rig) == set()
    await rig.feed(rig.saved("teams/pay.md", "---\naliases: [결제팀]\n---\n# Payments Team\n\nSee the log."))
    await rig.feed(rig.saved("b.md", "# Week\n\n| who |\n|---|\n| Payments team |\n\n- payments\n- team\n"))
    assert await edges(rig) == {
        ("a.md", "payments team", "teams/pay.md", False, ((11, 24),)),
        ("a.md", "결제팀", "teams/pay.md", False, ((33, 36),)),
        ("b.md", "payments team", "teams/pay.md", False, ((24, 37),)),
    }
    rows = (await rig.rows(Index.LINKS)).values()
    [row] = [r for r in rows if r["from_path"] == "b.md"]
    assert row["occurrences"] == [
        {"start": 24, "end": 37, "display": None, "context": "| Payments team |", "heading": None}
    ]
    await rig.feed(rig.removed("teams/pay.md"))
    assert await edges(rig) == set()


async def test_a_common_name_has_no_edges_and_hides_no_shorter_one(rig: Rig) -> None:
    says = "We asked the harbour office today."
    await rig.feed(rig.saved("names/a.md", "# Harbour"), rig.saved("names/b.md", "# Harbour office"))
    await rig.feed(*[rig.saved(f"{n}.md", f"# Day {n}\n\n{says}") for n in range(CAP - 1)])
    few = {(f"{n}.md", "harbour office", "names/b.md") for n in range(CAP - 1)}
    assert await aims(rig) == few
    # The names' own notes say them too: one text more than the cap allows, and `harbour` is more common still.
    await rig.feed(
        rig.saved("9.md", f"# Day 9\n\n{says}"), rig.saved("c.md", "# Crane\n\nOffice of the tide.")
    )
    assert await aims(rig) == set()
    await rig.feed(rig.saved("tide.md", "# Office"))
    offices = {(f"{n}.md", "office", "tide.md") for n in (0, 1, 9)}
    assert await aims(rig) == set()
    await rig.feed(rig.removed("c.md"), rig.removed("names/b.md"))
    await rig.feed(rig.saved("tide.md", "---\naliases: [office]\n---\n# Tide"))
    assert await aims(rig) == offices
    await rig.feed(rig.saved("names/b.md", "# Harbour office"))
    assert await aims(rig) == set()
    await rig.feed(rig.saved("0.md", "# Day 0\n\nNothing."))
    assert await aims(rig) == {(f"{n}.md", "harbour office", "names/b.md") for n in (1, 9)}
    assert await edges(rig) == expected([rig.root])
    await rig.embed_all()
    assert {
        k: n for k, n in (await rig.verified()).items() if "link" in k or "document" in k or "gate" in k
    } == {}


WORDS = ["harbour", "office", "crane", "ledger", "결제팀", "회의", "tide"]
PARTICLES = ("", "", "은", "에서", "의")


def sentence(rnd: random.Random) -> str:
    words = [rnd.choice(WORDS) for _ in range(rnd.randint(2, 9))]
    said = [f"{w}{rnd.choice(PARTICLES)}" if ord(w[0]) > 0x1000 else w.title() for w in words]
    marks = ["`{}`", "[[{}]]", "**{}**", "{}", "{}", "{}", "{}\n", "{}\n\n"]
    return " ".join(rnd.choice(marks).format(word) for word in said)


def note(rnd: random.Random) -> str:
    name = " ".join(rnd.choice(WORDS) for _ in range(rnd.randint(1, 5)))
    aliases = [rnd.choice(WORDS) for _ in range(rnd.randint(0, 1))]
    return f"---\naliases: [{', '.join(aliases)}]\n---\n# {name}\n\n{sentence(rnd)}\n"


def changes(rig: Rig, roots: Sequence[VaultRoot], rnd: random.Random, count: int) -> list[Record]:
    """Saves, edits, renames and deletions, as the watcher would tell of them."""
    records: list[Record] = []
    for _ in range(count):
        root = rnd.choice(roots)
        path = f"{rnd.choice(['', 'x/', 'x/y/'])}n{rnd.randint(0, 4)}.md"
        if rnd.random() < 0.25:
            records.append(rig.removed(path, root=root))
        elif rnd.random() < 0.2 and (root.path / path).exists():
            text = (root.path / path).read_text(encoding="utf-8")
            records += [rig.removed(path, root=root), rig.saved(f"moved/{path}", text, root=root)]
        else:
            records.append(rig.saved(path, note(rnd), root=root))
    return records


async def feed_shuffled(workers: Sequence[Any], records: list[Record], rnd: random.Random) -> None:
    """Each document's events in order, as its partition gives them; documents in any order, by several workers."""
    rnd.shuffle(records)
    shares: list[list[Record]] = [[] for _ in workers]
    for record in records:
        shares[rnd.randrange(len(workers))].append(record)

    async def work(worker: Any, share: list[Record]) -> None:
        while share:
            size = rnd.randint(1, 6)
            batch, share = share[:size], share[size:]
            await worker.feed(*batch)

    await asyncio.gather(*(work(w, s) for w, s in zip(workers, shares, strict=True)))


@pytest.mark.parametrize("seed", range(3))
async def test_any_order_of_arrival_gives_the_edges_of_a_plain_matcher(
    stack: Stack, prefix: str, tmp_path: Path, seed: int
) -> None:
    """Two workers at once, small caps crossed both ways, shared and personal documents."""
    rnd = random.Random(seed)  # noqa: S311 - a reproducible case, no secret
    roots = [
        vault_root(tmp_path, "ada"),
        vault_root(tmp_path, "bob", agent="bob"),
        vault_root(tmp_path, "own", agent="ada", scope="personal"),
    ]
    config = agent_config(stack, prefix, roots, name_in_degree_max=CAP)
    async with opened_rig(config) as rig, reopened(rig, rig.config) as second:
        for _ in range(4):
            await feed_shuffled([rig, second], changes(rig, roots, rnd, rnd.randint(8, 20)), rnd)
            assert await edges(rig) == expected(roots)
