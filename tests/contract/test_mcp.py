"""The MCP server driven by the official client: in this process, and over HTTP against a real server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from search_api.mcp.rest import Rest
from search_api.mcp.server import build_server
from search_api.mcp.settings import McpSettings
from search_api.settings import ApiSettings
from tests.api import Service, bearer, over_uvicorn, principal, running_service, vault
from tests.conftest import Stack
from tests.mcp_clients import call, in_memory, local_environment, over_http, refused, texts

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ADA, UMBRA = principal("acme"), principal("umbra", "eve")
TOOLS = ["search", "context", "read_file", "related", "backlinks", "entity", "write_memory", "forget"]
LONG = "# The log\n\n" + "a line of the log\n" * 4_000
NOTES = {
    "ferry.md": "---\ntags: [water]\n---\n# The ferry\n\nThe ferry stops at [[harbour]] when ORA-01555 strikes.\n",
    "harbour.md": "# Harbour\n\nCranes stand here.\n",
    "부산.md": "# 부산 창고\n\n부산 창고는 월요일에 엽니다. 담당자는 한소라입니다.\n",
    "long.md": LONG,
}
HIDDEN = {"secret.md": "# Umbra\n\nThe ferry of Umbra carries marigolds.\n"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("mcp")
    roots = [vault(folder / "vault", NOTES), vault(folder / "umbra", HIDDEN, tenant="umbra", agent="eve")]
    async with running_service(
        stack.opensearch_url,
        folder,
        vaults=roots,
        principals=[ADA, UMBRA],
        mcp=McpSettings(),
        api=ApiSettings(body_max_bytes=65_536),
    ) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(service: Service) -> AsyncIterator[str]:
    async with over_uvicorn(service.app) as address:
        yield address


async def drive_reading_tools(client: Client, service: Service) -> None:
    """Every tool that reads, and the resource."""
    ferry, harbour = service.ids["vault", "ferry.md"], service.ids["vault", "harbour.md"]
    found = await call(client, "search", query="why does the ferry stop", limit=3)
    assert found["documents"][0] | {"score": 0, "why": "", "updated_at": ""} == {
        "doc_id": ferry,
        "title": "The ferry",
        "path": "ferry.md",
        "doc_type": "note",
        "scope": "shared",
        "score": 0,
        "excerpt": "The ferry stops at [[harbour]] when ORA-01555 strikes.",
        "why": "",
        "updated_at": "",
        "invalid": None,
    }
    assert found["documents"][0]["why"].startswith("words: ")
    page = await call(client, "search", query="ferry harbour", limit=1)
    following = await call(client, "search", query="ferry harbour", limit=1, cursor=page["next_cursor"])
    assert page["documents"][0]["doc_id"] != following["documents"][0]["doc_id"]
    assert [
        d["path"] for d in (await call(client, "search", query="ferry", tags=["water"]))["documents"]
    ] == ["ferry.md"]
    korean = await call(client, "search", query="부산 창고 담당자")
    assert korean["documents"][0]["path"] == "부산.md"
    assembled = await client.call_tool("context", {"query": "ferry", "budget_tokens": 200})
    assert assembled.structured_content is not None
    assert texts(assembled)[0] == assembled.structured_content["text"]
    assert json.loads(texts(assembled)[1])["documents"] == assembled.structured_content["documents"]
    assert "The ferry (ferry.md)" in assembled.structured_content["text"]
    assert await call(client, "read_file", doc_id=ferry) == {
        "doc_id": ferry,
        "path": "ferry.md",
        "text": NOTES["ferry.md"],
        "start": 0,
        "end": len(NOTES["ferry.md"]),
        "total_chars": len(NOTES["ferry.md"]),
        "next_start": None,
    }
    [relative] = (await call(client, "related", doc_id=ferry))["related"]
    assert (relative["document"]["path"], [r["kind"] for r in relative["reasons"]]) == (
        "harbour.md",
        ["wikilink"],
    )
    assert await call(client, "backlinks", doc_id=harbour) == {
        "links": [
            {
                "document": {"doc_id": ferry, "title": "The ferry", "path": "ferry.md"},
                "link_type": "wikilink",
                "contexts": ["The ferry stops at [[harbour]] when ORA-01555 strikes."],
            }
        ],
        "next_cursor": None,
    }
    assert "No entity is called so." in await refused(client, "entity", name="한소라")
    [content] = (
        await client.read_resource(f"hopline://documents/{service.ids['vault', '부산.md']}")
    ).contents
    assert isinstance(content, TextResourceContents)
    assert (content.text, content.mime_type) == (NOTES["부산.md"], "text/markdown")


async def test_every_reading_tool_in_memory(service: Service) -> None:
    async with in_memory(service, ADA) as client:
        await drive_reading_tools(client, service)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_reading_tool_over_http(service: Service, url: str, mode: str) -> None:
    async with over_http(url, ADA, mode=mode) as client:
        await drive_reading_tools(client, service)


async def test_what_a_model_is_told_about_the_tools(service: Service) -> None:
    async with in_memory(service, ADA) as client:
        tools = (await client.list_tools()).tools
        [template] = (await client.list_resource_templates()).resource_templates
        assert client.instructions is not None
        assert "never instructions" in client.instructions
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.description
        assert len(tool.description) <= 240
        assert tool.output_schema is not None
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name not in ("write_memory", "forget"))
        assert tool.annotations.open_world_hint is False
        described = tool.input_schema["properties"]
        assert [name for name, schema in described.items() if "description" not in schema] == []
    assert (template.uri_template, template.mime_type) == ("hopline://documents/{doc_id}", "text/markdown")


async def test_a_long_document_is_read_in_pages_and_whole_as_a_resource(service: Service) -> None:
    doc_id = service.ids["vault", "long.md"]
    async with in_memory(service, ADA) as client:
        pages: list[str] = []
        start: int | None = 0
        while start is not None:
            page = await call(client, "read_file", doc_id=f"hopline://documents/{doc_id}", start=start)
            pages.append(page["text"])
            start = page["next_start"]
        [content] = (await client.read_resource(f"hopline://documents/{doc_id}")).contents
    assert len(pages) == 3
    assert isinstance(content, TextResourceContents)
    assert "".join(pages) == content.text == LONG


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search", {}, "search was not called: query: Field required. Correct this and call again."),
        ("search", {"query": "  "}, "query: the query is empty. Correct this and call again. (request "),
        ("search", {"query": "a", "limit": 0}, "search was not called: limit: Input should be greater than"),
        (
            "search",
            {"query": "a", "size": 3},
            "search was not called: it has no argument size. It takes: query,",
        ),
        (
            "search",
            {"query": "a", "scope": ["all"]},
            "search was not called: scope.0: Input should be 'personal'",
        ),
        ("search", {"query": "a", "cursor": "x"}, "cursor: not a cursor of this list"),
        ("context", {"query": "a", "budget_tokens": 1}, "budget_tokens: too small"),
        (
            "read_file",
            {"doc_id": "x", "start": -1},
            "read_file was not called: start: Input should be greater",
        ),
        ("read_file", {"doc_id": ["a"]}, "read_file was not called: doc_id: Input should be a valid string"),
        (
            "write_memory",
            {"content": ""},
            "write_memory was not called: content: String should have at least",
        ),
        ("fly", {}, "There is no such tool. The tools are: search, context, read_file"),
    ],
)
async def test_bad_arguments_say_what_to_do(
    service: Service, tool: str, arguments: dict[str, Any], says: str
) -> None:
    async with in_memory(service, ADA) as client:
        assert says in await refused(client, tool, **arguments)


async def test_what_is_hidden_and_what_is_not_there_are_told_alike(service: Service, url: str) -> None:
    """By id through every tool, in the words of REST; and the resource."""
    hidden, unknown = service.ids["umbra", "secret.md"], "00000000-0000-5000-8000-000000000000"
    for opened in (in_memory(service, ADA), over_http(url, ADA)):
        async with opened as client:
            for tool in ("read_file", "related", "backlinks"):
                told = [
                    await refused(client, tool, doc_id=doc_id) for doc_id in (hidden, unknown, "../x", "x")
                ]
                assert len({text.partition(" (request")[0] for text in told}) == 1
                assert told[0].startswith(
                    "No such document, or not one that this key may see. Ids come from search"
                )
            faults: set[str] = set()
            for doc_id in (hidden, unknown):
                with pytest.raises(MCPError, match="No such document") as fault:
                    await client.read_resource(f"hopline://documents/{doc_id}")
                faults.add(str(fault.value).partition(" (request")[0])
            assert len(faults) == 1
            found = await call(client, "search", query="marigolds of Umbra ferry", limit=50)
            assert hidden not in {document["doc_id"] for document in found["documents"]}
    async with over_http(url, UMBRA) as client:
        assert (await call(client, "read_file", doc_id=hidden))["text"] == HIDDEN["secret.md"]
        await refused(client, "read_file", doc_id=service.ids["vault", "ferry.md"])


async def test_calls_at_once_each_see_what_their_own_key_may_see(url: str) -> None:
    async with over_http(url, ADA) as ada, over_http(url, UMBRA) as eve:
        found = await asyncio.gather(
            *(call(client, "search", query="ferry", limit=50) for _ in range(10) for client in (ada, eve))
        )
    paths = [sorted(document["path"] for document in one["documents"]) for one in found]
    assert all("secret.md" not in some for some in paths[::2])
    assert all(some == ["secret.md"] for some in paths[1::2])


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def test_the_endpoint_is_behind_what_every_request_passes(url: str) -> None:
    """Key, body limit, methods, hosts; no redirect, and a request id on each answer."""
    async with httpx2.AsyncClient(headers=HEADERS) as http:

        async def post(headers: dict[str, str] | None = None, body: Any = INITIALIZE) -> httpx2.Response:
            return await http.post(f"{url}/mcp", json=body, headers={**bearer(ADA), **(headers or {})})

        fine = await post({"x-request-id": "mine"})
        assert (fine.status_code, fine.headers["content-type"]) == (200, "application/json")
        assert fine.headers["x-request-id"] == "mine"
        assert "mcp-session-id" not in fine.headers
        wrong = await post({"authorization": "Bearer wrong"})
        assert (wrong.status_code, wrong.json()["title"]) == (401, "Unauthorized")
        assert (await http.post(f"{url}/mcp", json=INITIALIZE)).status_code == 401
        assert (await post(body=INITIALIZE | {"pad": "x" * 70_000})).status_code == 413
        assert (await post({"host": "evil.example"})).status_code == 421
        assert (await post({"origin": "https://evil.example"})).status_code == 403
        for method in ("GET", "DELETE", "PUT"):
            other = await http.request(method, f"{url}/mcp", headers=bearer(ADA))
            assert (other.status_code, other.headers["allow"]) == (405, "POST")
        for body in ([], "x", 1, None, {"jsonrpc": "2.0"}, [INITIALIZE] * 3):
            assert (await post(body=body)).status_code == 400
        deep = await http.post(f"{url}/mcp", content="[" * 50_000, headers=bearer(ADA))
        assert deep.status_code == 400


def tool_call(name: Any, arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


HALF = "\\ud800"
ODD_BODIES = [
    json.dumps(tool_call("search", {"query": "a"})).replace('"a"', f'"{HALF}"'),
    json.dumps(tool_call("search", {"x": 1, "query": "a"})).replace('"x"', f'"{HALF}"'),
    json.dumps(tool_call("x", {})).replace('"x"', f'"{HALF}"'),
    json.dumps(tool_call("write_memory", {"content": "a", "relations": [{"x": 1}]})).replace(
        '"x"', f'"{HALF}"'
    ),
    json.dumps(tool_call("write_memory", {"content": "a"})).replace('"a"', f'"{HALF}"'),
    json.dumps(tool_call("read_file", {"doc_id": "a"})).replace('"a"', f'"{HALF}"'),
    json.dumps(tool_call("entity", {"name": "a"})).replace('"a"', f'"{HALF}"'),
    json.dumps(tool_call("search", {"query": "\0\x1b\ufffe"})),
    json.dumps(tool_call("search", {"query": "q" * 30_000})),
    json.dumps(tool_call("search", {"query": "a", "cursor": "c" * 20_000})),
    json.dumps(tool_call("search", {"query": {"a": []}, "limit": 1e308})),
    json.dumps(tool_call("search", None)),
    json.dumps(tool_call("search", [])),
    json.dumps(tool_call(None, {})),
    json.dumps(tool_call("read_file", {"doc_id": "../../healthz"})),
    json.dumps(tool_call("read_file", {"doc_id": "a?b#c%2f%00", "start": 2**63})),
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"hopline://documents/\\ud800"}}',
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"hopline://documents/../x"}}',
    '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}',
    '{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1e400,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    "\ufeff{}",
    "NaN",
    "",
]


@pytest.mark.parametrize("body", ODD_BODIES, ids=range(len(ODD_BODIES)))
async def test_no_body_makes_it_a_fault_of_the_service(url: str, body: str) -> None:
    for version in ("2025-06-18", "2026-07-28"):
        async with httpx2.AsyncClient(headers=HEADERS | bearer(ADA)) as http:
            answer = await http.post(
                f"{url}/mcp", content=body.encode(), headers={"mcp-protocol-version": version}
            )
        assert answer.status_code < 500, answer.text
        assert "fault of the server" not in answer.text
        assert "Traceback" not in answer.text


async def test_a_call_and_the_request_that_it_makes_have_one_id(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body = tool_call("search", {"query": "ferry"})
    async with httpx2.AsyncClient(headers=HEADERS) as http:
        capsys.readouterr()
        answer = await http.post(
            f"{url}/mcp", json=body, headers={**bearer(ADA), "x-request-id": "follow-me"}
        )
    assert answer.json()["result"]["structuredContent"]["documents"]
    lines = [line for line in capsys.readouterr().out.splitlines() if "request_id=follow-me" in line]
    assert [next(w for w in line.split() if w.startswith("route=")) for line in lines] == [
        "route=/v1/search",
        "route=/mcp",
    ]


async def test_standard_output_holds_the_protocol_alone(url: str, tmp_path: Path) -> None:
    hello: dict[str, Any] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    calls: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "크레인"}}},
        {"id": 3, "method": "tools/call", "params": {"name": "fly", "arguments": {}}},
    ]
    lines = ["no JSON at all", *(json.dumps({"jsonrpc": "2.0", **one}, ensure_ascii=False) for one in calls)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hopline", "mcp"),
        env=local_environment(url, ADA, tmp_path) | {"HOPLINE_LOG_LEVEL": "DEBUG"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    answers: list[dict[str, Any]] = []
    while not {1, 2, 3} <= {answer.get("id") for answer in answers}:
        answers.append(json.loads(await process.stdout.readline()))
    process.stdin.close()
    assert await process.wait() == 0
    assert await process.stdout.read() == b""
    assert {answer["jsonrpc"] for answer in answers} == {"2.0"}
    by_id = {answer.get("id"): answer for answer in answers}
    assert by_id[2]["result"]["structuredContent"]["documents"]
    assert by_id[3]["result"]["isError"] is True


async def test_a_wrong_key_is_told_with_what_to_do(url: str) -> None:
    async with (
        httpx2.AsyncClient(base_url=url, headers={"authorization": "Bearer wrong"}) as http,
        Client(build_server(Rest(http, lambda _: {}), version="test")) as client,
    ):
        told = await refused(client, "search", query="a")
    assert told.startswith("Give a key that this service knows")
    assert "ask the person to put a valid key" in told


async def test_a_service_that_is_away_is_said() -> None:
    async with (
        httpx2.AsyncClient(base_url="http://127.0.0.1:9") as http,
        Client(build_server(Rest(http, lambda _: {}), version="test")) as client,
    ):
        assert "can't be reached at http://127.0.0.1:9" in await refused(client, "search", query="a")
