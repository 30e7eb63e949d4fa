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


async def test_namespaces_come_are_edited_and_go_under_one_watch(
    stack: Stack, prefix: str, tmp_path: Path
) -> None:
    tree, elsewhere = tmp_path / "memories", tmp_path / "elsewhere"
    for n in range(60):
        put(tree, f"t{n % 3}/personal/agent-{n}/a.md", str(n))
    put(elsewhere, "ada/x.md")
    (tree / "rival").mkdir()
    (tree / "rival/personal").symlink_to(elsewhere)
    put(tree, "t0/shared/own/b.md", "of a namespace with a root of its own")
    own = VaultRoot(name="own", path=tmp_path / "own", tenant="t0", agent="own")
    own.path.mkdir()
    before = threading.active_count()
    async with (
        watched(stack, prefix, tmp_path, roots=[own], settings=QUICK, memories=tree) as world,
        world.watcher(),
    ):
        first = await world.received_at_least(60)
        # Of the process: the pool of asyncio and the watching library's own.
        assert threading.active_count() - before < 40
        new = put(tree, "t9/team/ops/ada/memories/2031/t.md")
        found = await world.received_at_least(1)
        new.write_text("edited")
        found += await world.received_at_least(1)
        new.unlink()
        found += await world.received(1)
        assert {(e.tenant_id, e.agent_id, e.path) for e in first} == {
            (f"t{n % 3}", f"agent-{n}", "a.md") for n in range(60)
        }
        assert [(e.tenant_id, e.agent_id, e.team_id, e.path, e.kind, e.content) for e in found] == [
            ("t9", "ada", "ops", "memories/2031/t.md", "upserted", b"text"),
            ("t9", "ada", "ops", "memories/2031/t.md", "upserted", b"edited"),
            ("t9", "ada", "ops", "memories/2031/t.md", "deleted", None),
        ]
        status = world.status("memory tree")
        assert (status["state"], status["files"]) == ("watching", 60)
