"""Looking names up in several requests at once, where one of them fails."""

from __future__ import annotations

import asyncio

import pytest

from indexers.domain.identity import EntityNamespace, TenantId
from indexers.errors import RefusedRequest
from indexers.linking.name_search import REQUESTS_MAX, rows_alike
from indexers.opensearch.open import gate_at
from indexers.opensearch.retry import RetryPolicy
from indexers.settings import OpenSearchSettings
from tests.answering import serving

NAMES = EntityNamespace(tenant_id=TenantId("acme"), owner="shared")
REFUSAL = b'{"error": {"type": "parsing_exception", "reason": "no such thing"}, "status": 400}'
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


async def test_a_failed_request_ends_those_beside_it() -> None:
    """Left alone they would go on, and begin the rest, for a caller who has gone."""
    ended: list[str] = []
    begun, all_at_work = 0, asyncio.Event()

    async def handle(_sent: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal begun
        begun += 1
        if begun == REQUESTS_MAX:
            all_at_work.set()
        await all_at_work.wait()
        if begun == REQUESTS_MAX and not ended:
            ended.append("refused")
            writer.write(REFUSED % (len(REFUSAL), REFUSAL))

    keys = [f"harbour service number {n} of the northern quay" for n in range(400)]
    async with serving(handle) as (port, connections):
        gate = gate_at(
            f"http://127.0.0.1:{port}",
            OpenSearchSettings(timeout_seconds=1.0),
            prefix="t",
            retry=RetryPolicy.once(),
        )
        before = asyncio.all_tasks()
        with pytest.raises(RefusedRequest, match="parsing_exception: no such thing"):
            await rows_alike(gate, NAMES, "service", keys)
        left = {task for task in asyncio.all_tasks() - before if "rows_alike" in str(task.get_coro())}
        await gate.close()
        assert (left, len(connections)) == (set(), REQUESTS_MAX)
