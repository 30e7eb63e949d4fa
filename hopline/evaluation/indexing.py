"""From a vault to an index that stands still: waiting, counting, and removing it again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from hopline.evaluation.homes import Manifest
from hopline.local.maven import Say
from hopline.settings import Settings
from indexers.domain.identity import Principal, TenantId
from indexers.errors import HoplineError
from indexers.opensearch.gate import Gate, living
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.opensearch.rows import Index
from streams.admin import delete_topics
from streams.lag import LagReader
from streams.rebuild import AGENTS, COMMAND_ATTEMPTS, LOOK_SECONDS
from streams.topics import Topics
from streams.watcher.status import read_statuses

#: Sightings in a row of "nothing waits": a batch between two topics is in none of them.
_QUIET_LOOKS = 4
_TELL_SECONDS = 5.0
#: Longest time in which nothing moves: a batch of long documents takes minutes where cores are shared.
PATIENCE_SECONDS = 600.0


async def wait_indexed(settings: Settings, say: Say, check: Callable[[], None]) -> None:
    """Until the scan is over and no agent is behind. `check` raises where a process has ended."""
    quiet, moved_at, told_at, seen = 0, time.monotonic(), 0.0, ""
    async with _backlog(settings) as backlog:
        while quiet < _QUIET_LOOKS:
            check()
            waiting, scan = await backlog(), _scan_of(settings)
            now, state = time.monotonic(), _progress(scan, waiting)
            if state != seen:
                seen, moved_at = state, now
                if now - told_at > _TELL_SECONDS:
                    told_at = now
                    say(f"  {state}")
            if now - moved_at > PATIENCE_SECONDS:
                raise HoplineError(f"nothing moved for {PATIENCE_SECONDS:.0f} s: {state}")
            quiet = quiet + 1 if scan.get("last_scan") and not any(waiting.values()) else 0
            await asyncio.sleep(LOOK_SECONDS)


async def count_documents(settings: Settings, manifest: Manifest) -> int:
    """Documents that a search can find, everything written so far included."""
    gate = _gate(settings)
    try:
        await gate.refresh()
        principal = Principal.pipeline(TenantId(manifest.tenant))
        return await gate.count(principal, Index.DOCUMENTS, living())
    finally:
        await gate.close()


async def drop(settings: Settings, *, kafka: bool, store: bool) -> None:
    """The prefix' topics and indices, each where its engine lives on; nothing of another prefix."""
    if store:
        gate = _gate(settings)
        try:
            await gate.drop_indices()
        finally:
            await gate.close()
    if kafka:
        topics = tuple(Topics(settings.prefix).retention_ms)
        await delete_topics(settings.kafka, settings.kafka_servers, topics)


@asynccontextmanager
async def _backlog(settings: Settings) -> AsyncIterator[Callable[[], Awaitable[dict[str, int]]]]:
    """Records that each agent has not committed yet, asked over connections that stay open."""
    topics = Topics(settings.prefix)
    retry = RetryPolicy(attempts=COMMAND_ATTEMPTS)
    readers = {
        agent: LagReader(settings.kafka, settings.kafka_servers, topics.group(agent)) for agent in AGENTS
    }

    async def backlog() -> dict[str, int]:
        found = {}
        for agent, reader in readers.items():
            parts = await retry.call(partial(reader.read, topics.read_by(agent)))
            found[agent] = sum(part.lag for part in parts)
        return found

    try:
        yield backlog
    finally:
        for reader in readers.values():
            await reader.close()


def _gate(settings: Settings) -> Gate:
    retry = RetryPolicy(attempts=COMMAND_ATTEMPTS)
    return gate_at(settings.opensearch_url, settings.opensearch, prefix=settings.prefix, retry=retry)


def _scan_of(settings: Settings) -> Mapping[str, Any]:
    found = read_statuses(settings.local.data_dir / "watcher")
    return found[0] if found else {}


def _progress(scan: Mapping[str, Any], waiting: Mapping[str, int]) -> str:
    files = f"{scan['files']} files seen" if scan else "the watcher begins"
    return "; ".join(
        [files, *(f"{agent} has {behind} waiting" for agent, behind in waiting.items() if behind)]
    )
