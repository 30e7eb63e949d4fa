"""`hopline mcp` and `/mcp` as processes, connected as docs/how-to/connect-agents.md tells a coding agent."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from hopline.local.ports import free_ports
from hopline.local_key import write_local_key
from tests.api import running_service, vault
from tests.conftest import Stack
from tests.pipeline import KEY, REPOSITORY, Pipeline, running, write_keys

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

GUIDE = REPOSITORY / "docs" / "how-to" / "connect-agents.md"
NOTES = {
    "부산.md": "# 부산 창고\n\n부산 창고는 [[harbour]] 옆입니다. \u001b[31m\n",
    "harbour.md": "# Harbour\n\nCranes.\n",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pipeline]:
    folder = tmp_path_factory.mktemp("mcp")
    root = vault(folder / "vault", NOTES, tenant="local", agent="me")
    write_keys(folder)
    write_local_key(folder, KEY)
    prefix = f"t{free_ports()}mcp"
    async with running_service(stack.opensearch_url, folder, vaults=[root], prefix=prefix):
        own = Pipeline(
            prefix=prefix,
            kafka_servers=stack.kafka_servers,
            opensearch_url=stack.opensearch_url,
            data_dir=folder,
            vaults=[{"name": "vault", "path": str(root.path)}],
        )
        with running(own, "api"):
            yield own


def configured(kind: str) -> dict[str, Any]:
    """The server's entry in the guide's JSON of this kind."""
    blocks = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)]
    [entry] = [
        b["mcpServers"]["hopline"]
        for b in blocks
        if ("command" if kind == "stdio" else "url") in b["mcpServers"]["hopline"]
    ]
    found: dict[str, Any] = entry
    return found


def environment(pipeline: Pipeline) -> dict[str, str]:
    """As a person's shell has it, whose agent passes it on."""
    return pipeline.environment | {"HOPLINE_API__PORT": str(pipeline.ports["api"])}


def stdio(pipeline: Pipeline, **more: str) -> StdioServerParameters:
    entry = configured("stdio")
    command = shutil.which(entry["command"], path=str(Path(sys.executable).parent))
    assert command is not None
    return StdioServerParameters(
        command=command, args=entry["args"], env=environment(pipeline) | entry.get("env", {}) | more
    )


def told(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def drive(client: Client) -> None:
    found = (await client.call_tool("search", {"query": "부산 창고"})).structured_content
    assert found is not None
    [doc_id] = [d["doc_id"] for d in found["documents"] if d["path"] == "부산.md"]
    page = await client.call_tool("read_file", {"doc_id": doc_id})
    assert told(page).startswith(NOTES["부산.md"])
    related = (await client.call_tool("related", {"doc_id": doc_id})).structured_content
    assert related is not None
    assert [one["document"]["path"] for one in related["related"]] == ["harbour.md"]
    [content] = (await client.read_resource(f"hopline://documents/{doc_id}")).contents
    assert content.text == NOTES["부산.md"]  # type: ignore[union-attr]
    missing = await client.call_tool("read_file", {"doc_id": "none"})
    assert missing.is_error
    assert "No such document" in told(missing)


async def test_the_configuration_of_the_guide_for_standard_input_and_output(pipeline: Pipeline) -> None:
    async with Client(stdio_client(stdio(pipeline))) as client:
        await drive(client)


async def test_the_configuration_of_the_guide_for_http(pipeline: Pipeline) -> None:
    entry = configured("http")
    assert entry["type"] == "http"
    url = entry["url"].replace(":8470/", f":{pipeline.ports['api']}/")
    headers = {name: value.replace("${HOPLINE_API_KEY}", KEY) for name, value in entry["headers"].items()}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await drive(client)


async def test_a_wrong_key_is_told_with_what_to_do(pipeline: Pipeline) -> None:
    async with Client(stdio_client(stdio(pipeline, HOPLINE_API_KEY="wrong"))) as client:
        refused = await client.call_tool("search", {"query": "a"})
    assert refused.is_error
    assert "Give a key that this service knows" in told(refused)
    assert "ask the person to put a valid key" in told(refused)


async def test_standard_output_holds_the_protocol_alone(pipeline: Pipeline) -> None:
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
        env=environment(pipeline) | {"HOPLINE_LOG_LEVEL": "DEBUG"},
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
