"""An HTTP proxy before the real OpenSearch that breaks what a test tells it to.

A faulty bulk item is taken out of the request, as a node that refuses it would, and an answer is put in its
place; everything else is the engine's own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
from aiohttp import web
from yarl import URL

_HOP_HEADERS = {"connection", "content-length", "content-encoding", "transfer-encoding", "host", "keep-alive"}
_ERROR_TYPES = {
    429: "rejected_execution_exception",
    400: "mapper_parsing_exception",
    503: "unavailable_shards_exception",
}


@dataclass(slots=True, kw_only=True)
class ItemFault:
    """Bulk items whose id contains `row` answer with `status`, `times` times (None: always)."""

    row: str
    status: int
    times: int | None = None
    error_type: str = ""

    def answer(self, header: Mapping[str, Any]) -> dict[str, Any]:
        kind = self.error_type or _ERROR_TYPES.get(self.status, "injected_exception")
        error = {"type": kind, "reason": "injected by the test"}
        return {"_index": header["_index"], "_id": header["_id"], "status": self.status, "error": error}


@dataclass(slots=True, kw_only=True)
class RequestFault:
    """Requests whose path contains `path`, `times` times (None: always).

    `status`: answered so without the engine. `delay`: forwarded after `seconds`. `drop`: the connection is
    cut before the engine sees the request; `drop_answer`: after the engine has carried it out.
    """

    path: str
    kind: Literal["status", "delay", "drop", "drop_answer"]
    times: int | None = None
    status: int = HTTPStatus.SERVICE_UNAVAILABLE
    seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    method: str
    path: str
    #: Ids of a bulk request's items, as the client sent them.
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    action: str
    header: dict[str, Any]
    payload: bytes


class FaultProxy:
    """`async with FaultProxy(opensearch_url) as proxy:` then point the client at `proxy.url`."""

    def __init__(self, target: str) -> None:
        self._target = target.rstrip("/")
        self.item_faults: list[ItemFault] = []
        self.request_faults: list[RequestFault] = []
        self.seen: list[SeenRequest] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        application = web.Application(client_max_size=256 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def fail_item(self, row: str, *, status: int, times: int | None = None, error_type: str = "") -> None:
        self.item_faults.append(ItemFault(row=row, status=status, times=times, error_type=error_type))

    def fail_requests(
        self, path: str, *, status: int, times: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.request_faults.append(
            RequestFault(path=path, kind="status", status=status, times=times, headers=headers or {})
        )

    def delay(self, path: str, seconds: float, *, times: int | None = None) -> None:
        self.request_faults.append(RequestFault(path=path, kind="delay", seconds=seconds, times=times))

    def drop(self, path: str, *, times: int | None = None, after_answer: bool = False) -> None:
        kind: Literal["drop", "drop_answer"] = "drop_answer" if after_answer else "drop"
        self.request_faults.append(RequestFault(path=path, kind=kind, times=times))

    def heal(self) -> None:
        """Forget all faults."""
        self.item_faults.clear()
        self.request_faults.clear()

    @property
    def bulk_requests(self) -> list[tuple[str, ...]]:
        """Row ids of each bulk request, without the tenant part, in order."""
        return [tuple(row.partition("/")[2] for row in seen.rows) for seen in self.seen if seen.rows]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        items = _bulk_items(body) if request.path.endswith("/_bulk") else []
        rows = tuple(item.header["_id"] for item in items)
        self.seen.append(SeenRequest(method=request.method, path=request.path, rows=rows))
        fault = self._request_fault(request.path)
        if fault is not None and fault.kind == "status":
            return web.json_response(
                {"error": "injected by the test"}, status=fault.status, headers=fault.headers
            )
        if fault is not None and fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind == "drop":
            return _cut(request)
        faulty = {
            n: answer for n, item in enumerate(items) if (answer := self._item_answer(item)) is not None
        }
        response = (
            await self._forward_bulk(request, items, faulty) if faulty else await self._forward(request, body)
        )
        return _cut(request) if fault is not None and fault.kind == "drop_answer" else response

    def _request_fault(self, path: str) -> RequestFault | None:
        for fault in self.request_faults:
            if fault.path in path and fault.times != 0:
                fault.times = None if fault.times is None else fault.times - 1
                return fault
        return None

    def _item_answer(self, item: _Item) -> dict[str, Any] | None:
        for fault in self.item_faults:
            if fault.row in item.header["_id"] and fault.times != 0:
                fault.times = None if fault.times is None else fault.times - 1
                return {item.action: fault.answer(item.header)}
        return None

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
        url = URL(f"{self._target}{request.raw_path}", encoded=True)
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_HEADERS}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)

    async def _forward_bulk(
        self, request: web.Request, items: list[_Item], faulty: Mapping[int, dict[str, Any]]
    ) -> web.Response:
        sent = [item for n, item in enumerate(items) if n not in faulty]
        answers: list[dict[str, Any]] = []
        if sent:
            response = await self._forward(request, b"".join(item.payload for item in sent))
            if response.status != HTTPStatus.OK or not isinstance(response.body, bytes):
                return response
            answers = json.loads(response.body)["items"]
        healthy = iter(answers)
        merged = [faulty[n] if n in faulty else next(healthy) for n in range(len(items))]
        return web.json_response({"took": 1, "errors": True, "items": merged})


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _bulk_items(body: bytes) -> list[_Item]:
    items: list[_Item] = []
    lines = iter(body.splitlines(keepends=True))
    for line in lines:
        ((action, header),) = json.loads(line).items()
        payload = line if action == "delete" else line + next(lines)
        items.append(_Item(action=action, header=header, payload=payload))
    return items
