"""A call to a tool counts once for the tenant's limits, however many requests it makes inside."""

from __future__ import annotations

from typing import Any

import httpx2
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from indexers.domain.identity import AgentId, Principal, TenantId
from search_api.edge import send_problem
from search_api.limits import RateLimit
from search_api.mcp.endpoint import McpEndpoint
from search_api.mcp.settings import McpSettings
from search_api.metrics import ApiMetrics
from search_api.problems import Problem
from search_api.quotas import Quotas
from search_api.settings import LimitsSettings

WHO = Principal(tenant_id=TenantId("acme"), agent_id=AgentId("ada"))
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "read_file", "arguments": {"doc_id": "x"}},
}


class Limited:
    """What stands before and behind the limit in the service, and what came through: paths, and who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        metrics = ApiMetrics(CollectorRegistry())
        limits = LimitsSettings(requests_per_second=0.001, requests_burst=2)
        self.endpoint = McpEndpoint(McpSettings(), version="test", body_max_bytes=65_536)
        quotas = Quotas(limits, refusals=metrics.quota_refusals)
        self._limited = RateLimit(self.endpoint.before(self._rest), quotas=quotas, metrics=metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: dict[str, Any] = scope.setdefault("state", {})
        state |= {"request_id": "r-1", "principal": WHO}
        await self._limited(scope, receive, send)

    async def _rest(self, scope: Scope, _receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        self.asked.append(
            (scope["path"], headers[b"authorization"].decode(), headers[b"x-request-id"].decode())
        )
        await send_problem(send, Problem(kind="not-found", detail="No such document."), "r-1")


async def test_a_call_counts_once_and_asks_as_its_caller() -> None:
    app = Limited()
    headers = {
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer mine",
        "x-request-id": "mine",
        "within-mcp": "true",
    }
    async with (
        app.endpoint.serving(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as http,
    ):
        answers = [await http.post("/mcp", json=CALL, headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) > 1
    assert "No such document." in answers[0].text
    assert app.asked == [("/v1/documents/x/content", "Bearer mine", "r-1")] * 2
