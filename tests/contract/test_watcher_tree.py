"""The memory tree under one watch: folders that come and go, edits of people, links that lead out."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from indexers.settings import VaultRoot
from streams.settings import WatcherSettings
from tests.conftest import Stack
from tests.watching import watched

pytestmark = pytest.mark.engines
QUICK = WatcherSettings(debounce_ms=50)


def put(tree: Path, place: str, text: str = "text") -> Path:
    file = tree / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


async def test_namespaces_come_are_edited_and_go(stack: Stack, prefix: str, tmp_path: Path) -> None:
    tree = tmp_path / "memories"
    put(tree, "acme/personal/ada/a.md")
    put(tree, "acme/personal/own/b.md")
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere, "ada/x.md")
    (tree / "rival").mkdir(parents=True)
    (tree / "rival/personal").symlink_to(elsewhere)
    own = VaultRoot(name="own", path=tmp_path / "own", tenant="acme", agent="own", scope="personal")
    own.path.mkdir()
    async with (
        watched(stack, prefix, tmp_path, roots=[own], settings=QUICK, memories=tree) as world,
        world.watcher(),
    ):
        [first] = await world.received(1)
        new = put(tree, "acme/team/ops/ada/memories/2031/t.md")
        [second] = await world.received(1)
        new.write_text("edited")
        [third] = await world.received(1)
        new.unlink()
        [fourth] = await world.received(1)
        assert [
            (e.tenant_id, e.agent_id, e.scope, e.team_id, e.path, e.kind)
            for e in (first, second, third, fourth)
        ] == [
            ("acme", "ada", "personal", None, "a.md", "upserted"),
            ("acme", "ada", "team", "ops", "memories/2031/t.md", "upserted"),
            ("acme", "ada", "team", "ops", "memories/2031/t.md", "upserted"),
            ("acme", "ada", "team", "ops", "memories/2031/t.md", "deleted"),
        ]
        assert (third.content, world.status("memory tree")["state"]) == (b"edited", "watching")


async def test_many_namespaces_are_one_watch_and_no_thread_each(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    tree = tmp_path / "memories"
    for n in range(60):
        put(tree, f"t{n % 3}/personal/agent-{n}/a.md", str(n))
    before = threading.active_count()
    async with (
        watched(stack, prefix, tmp_path, roots=[], settings=QUICK, memories=tree) as world,
        world.watcher(),
    ):
        events = await world.received(60)
        assert {(e.tenant_id, e.agent_id) for e in events} == {(f"t{n % 3}", f"agent-{n}") for n in range(60)}
        # Of the process: the pool of asyncio and the library's one.
        assert threading.active_count() - before < 40
        assert world.status("memory tree")["files"] == 60
