"""The broker goes away while a vault changes: nothing is dropped, nothing is doubled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.conftest import Stack
from tests.engines import RunningEngine
from tests.watching import brief, watched

pytestmark = pytest.mark.engines


async def test_changes_wait_for_the_broker(
    broker: RunningEngine, stack: Stack, prefix: str, tmp_path: Path
) -> None:
    apart = Stack(kafka_servers=broker.address, opensearch_url=stack.opensearch_url)
    async with watched(apart, prefix, tmp_path) as vault:
        for name in ("kept", "moved", "gone"):
            (vault.root / f"{name}.md").write_text(name)
        async with vault.watcher():
            await vault.received(3)
            await asyncio.to_thread(broker.stop)
            (vault.root / "kept.md").write_text("changed once")
            await asyncio.sleep(1)
            (vault.root / "kept.md").write_text("changed twice")
            (vault.root / "moved.md").rename(vault.root / "there.md")
            (vault.root / "gone.md").unlink()
            (vault.root / "new.md").write_text("new")
            await asyncio.sleep(1)
            await asyncio.to_thread(broker.start)
            found = {brief(e): e.content for e in await vault.received_at_least(6)}
            assert await vault.received(0) == []
    assert found == {
        ("upserted", "kept.md"): b"changed twice",
        ("upserted", "there.md", "moved.md"): b"moved",
        ("deleted", "moved.md", "there.md"): None,
        ("deleted", "gone.md"): None,
        ("upserted", "new.md"): b"new",
    }
