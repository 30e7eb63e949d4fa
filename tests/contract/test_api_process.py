"""The service as its own process, and the commands and the client that talk to it."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from hopline.calls import InvalidRequest, NotAuthorised, NotFound
from hopline.cli.main import build_app
from hopline.client import AsyncHoplineClient, HoplineClient
from hopline.local.bootstrap import OPERATOR
from hopline.local.ports import free_ports
from indexers.errors import Transient
from search_api.keys import store_key
from tests.api import running_service, vault
from tests.conftest import Stack
from tests.pipeline import KEY, Pipeline, running, wait_for, write_keys

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

TEXT = "# The ferry\n\nSee [[harbour]] and [[nowhere]].\n\n부산 \u001b[31mred\n" + "line of text\n" * 20_000
NOTES = {
    "ferry.md": TEXT,
    "harbour.md": "---\ntags: [port]\n---\n# Harbour\n\nCranes and [[ferry]].\n",
} | {f"n{n}.md": f"# N{n}\n\nlantern {n}\n" for n in range(7)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pipeline]:
    folder = tmp_path_factory.mktemp("process")
    root = vault(folder / "vault", NOTES, tenant="local", agent="me")
    write_keys(folder)
    prefix = f"t{free_ports()}process"
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


def client(pipeline: Pipeline, key: str = KEY, **options: Any) -> HoplineClient:
    return HoplineClient(pipeline.api_url, key, **options)


async def test_the_client_searches_reads_and_walks(pipeline: Pipeline) -> None:
    with client(pipeline) as hopline:
        [hit] = hopline.search("Cranes", parts=["keyword"]).hits
        assert (hit.path, hit.tags, hit.title) == ("harbour.md", ["port"], "Harbour")
        ferry = next(iter(hopline.backlinks_all(hit.doc_id))).from_
        assert ferry.path == "ferry.md"
        assert "".join(hopline.text(ferry.doc_id)) == TEXT
        assert hopline.content(ferry.doc_id, start=2, max_chars=3).text == "The"
        assert [(link.target, link.to and link.to.path) for link in hopline.links_all(ferry.doc_id)] == [
            ("harbour", "harbour.md"),
            ("nowhere", None),
        ]
        assert hopline.document(ferry.doc_id).size == len(TEXT.encode())
        whole = hopline.search("lantern", page_size=100).hits
        assert list(hopline.search_all("lantern", page_size=2)) == whole


async def test_the_async_client_does_the_same(pipeline: Pipeline) -> None:
    async with AsyncHoplineClient(pipeline.api_url, KEY) as hopline:
        page = await hopline.search("lantern", parts=["keyword"], explain=True)
        assert page.trace is not None
        found = [hit.path async for hit in hopline.search_all("lantern", parts=["keyword"], page_size=3)]
        assert found == [hit.path for hit in page.hits]
        assert (await hopline.content(page.hits[0].doc_id)).text == NOTES[page.hits[0].path]


async def test_refusals_become_errors_that_say_what_is_wrong(pipeline: Pipeline) -> None:
    with client(pipeline) as hopline:
        with pytest.raises(InvalidRequest, match=r"body\.query: the query is empty"):
            hopline.search("  ")
        with pytest.raises(NotFound, match="No such document"):
            hopline.document("a..b?c#d")
    with client(pipeline, key="wrong") as hopline, pytest.raises(NotAuthorised, match="Give a key"):
        hopline.search("a")
    with (
        HoplineClient(f"http://127.0.0.1:{free_ports()}", KEY, attempts=2) as hopline,
        pytest.raises(Transient),
    ):
        hopline.search("a")


async def test_hopline_search(pipeline: Pipeline) -> None:
    shown = pipeline.cli("search", "Cranes", "port", "--keyword")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "1. Harbour  harbour.md" in shown.stdout
    assert "keyword" in shown.stdout
    assert "\x1b" not in shown.stdout
    answer = json.loads(
        pipeline.cli("search", "Cranes", "--json", "--explain", "--tag", "port", "-n", "1").stdout
    )
    assert [hit["path"] for hit in answer["hits"]] == ["harbour.md"]
    assert answer["trace"]["stages"]
    explained = pipeline.cli("search", "부산", "--explain")
    assert explained.returncode == 0
    assert "\x1b" not in explained.stdout
    nothing = pipeline.cli("search", "zzyzx", "--keyword")
    assert (nothing.returncode, nothing.stdout.strip()) == (0, "Nothing found.")


async def test_hopline_context_prints_markdown_within_the_budget(pipeline: Pipeline) -> None:
    shown = pipeline.cli("context", "Cranes", "port", "--budget", "200", "--tag", "port")
    assert shown.returncode == 0
    assert shown.stdout == "## 1. Harbour (harbour.md)\n\nCranes and [[ferry]].\n"
    assert shown.stderr.endswith("1 documents, 1 with excerpts\n")
    answer = json.loads(pipeline.cli("context", "lantern", "--json", "-n", "3", "--excerpts", "1").stdout)
    assert [bool(document["excerpts"]) for document in answer["documents"]] == [True, False, False]
    with client(pipeline) as hopline:
        found = hopline.context("Cranes port", budget_tokens=200, filters={"tags": ["port"]})
    assert found.text + "\n" == shown.stdout
    assert shown.stderr.startswith(f"{found.tokens} of 200 tokens")
    small = pipeline.cli("context", "Cranes", "--budget", "1")
    assert small.returncode == 2
    assert "--budget: too small" in small.stderr
    nothing = pipeline.cli("context", "Cranes", "--under", "nowhere/")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing found.\n")


async def test_hopline_read_prints_exactly_the_file(pipeline: Pipeline) -> None:
    by_path = pipeline.cli("read", "ferry.md")
    assert (by_path.returncode, by_path.stdout) == (0, TEXT)
    part = pipeline.cli("read", "ferry.md", "--start", "2", "--max", "9")
    assert part.stdout == "The ferry"
    row = json.loads(pipeline.cli("read", "harbour.md", "--json").stdout)
    assert row["content"]["text"] == NOTES["harbour.md"]
    assert pipeline.cli("read", row["document"]["doc_id"]).stdout == NOTES["harbour.md"]


async def test_hopline_links_and_backlinks(pipeline: Pipeline) -> None:
    links = pipeline.cli("links", "ferry.md")
    assert links.returncode == 0
    assert "harbour  (wikilink)  -> harbour.md" in links.stdout
    assert "nowhere  (wikilink)  no such document yet" in links.stdout
    backlinks = json.loads(pipeline.cli("backlinks", "ferry.md", "--json").stdout)
    assert [link["from"]["path"] for link in backlinks["links"]] == ["harbour.md"]
    assert pipeline.cli("backlinks", "n0.md").stdout.strip() == "No backlinks."


async def test_hopline_related_and_graph(pipeline: Pipeline) -> None:
    related = pipeline.cli("related", "ferry.md")
    assert related.returncode == 0
    assert "Harbour  harbour.md  1.00" in related.stdout
    assert "    wikilink: links to it: See [[harbour]] and [[nowhere]]." in related.stdout
    assert pipeline.cli("related", "n0.md").stdout == "Nothing is related to it.\n"
    graph = pipeline.cli("graph", "ferry.md", "--depth", "2")
    assert graph.stdout.splitlines()[:2] == ["0  The ferry  ferry.md", "1  Harbour  harbour.md"]
    # Equal edges go by the documents' ids.
    assert sorted(graph.stdout.splitlines()[2:]) == [
        "   Harbour -> The ferry  (wikilink, 1.00)",
        "   The ferry -> Harbour  (wikilink, 1.00)",
    ]
    answer = json.loads(pipeline.cli("graph", "ferry.md", "--json").stdout)
    assert [(node["path"], node["hop"]) for node in answer["nodes"]] == [("ferry.md", 0), ("harbour.md", 1)]
    with client(pipeline) as hopline:
        doc_id = hopline.search("Cranes", parts=["keyword"]).hits[0].doc_id
        assert [one.document.path for one in hopline.related(doc_id, page_size=1).related] == ["ferry.md"]
        assert hopline.graph(doc_id, depth=3).capped is False
    async with AsyncHoplineClient(pipeline.api_url, KEY) as asking:
        assert [one.document.path for one in (await asking.related(doc_id)).related] == ["ferry.md"]
        assert len((await asking.graph(doc_id)).nodes) == 2


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("read", "none.md"), 1, "no document 'none.md'"),
        (("read", "../etc/passwd"), 2, "is no path inside a vault"),
        (("read", "/etc/passwd.md"), 2, "relative to the vault root"),
        (("links", "00000000-0000-5000-8000-000000000000"), 1, "No such document"),
        (("search", " "), 2, "hopline: QUERY: the query is empty"),
        (("search", "a", "--since", "yesterday"), 2, "hopline: --since: not an ISO 8601"),
        (("search", "a", "--scope", "bogus"), 2, "'bogus' is none of personal, team, shared"),
        (("search", "a", "--type", "bogus"), 2, "'bogus' is none of note, memory"),
        (("search", "a", "--cursor", "bogus"), 2, "hopline: --cursor: not a cursor"),
        (("search", "x" * 3_000), 2, "hopline: QUERY: longer than 2000 characters"),
        (("write", ""), 2, "the memory is empty"),
        (("write", "a", "--type", "bogus"), 2, "'bogus' is none of note, memory"),
        (("write", "a", "--scope", "bogus"), 2, "'bogus' is none of personal, team, shared"),
        (
            ("write", "a", "--root", "vault", "--scope", "shared", "--wait", "linked"),
            2,
            "--scope, --wait: the",
        ),
        (("forget", "none.md"), 1, "no document 'none.md'"),
        (("events", "a", "--wait", "accepted"), 2, "'accepted' is none of ingested, searchable"),
        (("related", "none.md"), 1, "no document 'none.md'"),
        (("graph", "ferry.md", "--depth", "4"), 2, "--depth"),
        (("search", "a", "--page", "2", "--cursor", "c"), 2, "exclude each other"),
        (("search", "a", "--keyword", "--vector"), 2, "exclude each other"),
        (("search",), 2, "Missing argument"),
    ],
)
async def test_commands_that_fail_say_why_and_exit_with_it(
    pipeline: Pipeline, arguments: tuple[str, ...], status: int, says: str
) -> None:
    done = pipeline.cli(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("search", "a", "--since", "yesterday"), 2, "--since: not an ISO 8601"),
        (("search", "a", "--scope", "bogus"), 2, "is none of personal"),
        (("search",), 2, "Missing argument"),
        (("read", "none.md"), 1, "no document 'none.md'"),
    ],
)
async def test_with_json_an_error_is_json_on_stderr(
    pipeline: Pipeline, arguments: tuple[str, ...], status: int, says: str
) -> None:
    done = pipeline.cli(*arguments, "--json")
    assert (done.returncode, done.stdout) == (status, "")
    assert says in json.loads(done.stderr)["error"]


async def test_a_file_is_read_by_its_whole_path_and_a_wrong_key_names_its_variable(
    pipeline: Pipeline,
) -> None:
    assert pipeline.cli("read", f"{pipeline.vaults[0]['path']}/ferry.md").stdout == TEXT
    with client(pipeline, key="wrong") as hopline, pytest.raises(NotAuthorised, match="HOPLINE_API_KEY"):
        hopline.search("a")


async def test_pages_on_the_command_line_and_a_query_whose_words_are_nowhere(pipeline: Pipeline) -> None:
    first = pipeline.cli("search", "lantern", "-n", "2").stdout
    assert first.rstrip().endswith("More: --page 2")
    assert " 3. " in pipeline.cli("search", "lantern", "-n", "2", "--page", "2").stdout
    assert pipeline.cli("search", "lantern", "--page", "90").stdout.strip() == "Page 90 is past the end."
    away = pipeline.cli("search", "zzyzx").stdout
    assert away.startswith("No note contains these words; nearest in meaning:\n")


async def test_an_endless_chunked_body_is_cut_off(pipeline: Pipeline) -> None:
    head = (
        f"POST /v1/search HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", pipeline.ports["api"]), timeout=10) as connection:
        connection.sendall(head.encode())
        sent = 0
        try:
            while sent < 64_000_000:
                connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
                sent += 65_536
        except OSError:
            pass
        assert sent < 64_000_000
    assert pipeline.http_status("api", "/healthz") == 200
    assert pipeline.metric("api", 'hopline_http_problems_total{kind="body-too-large"}') >= 1


async def test_log_lines_hold_no_text_of_queries_or_keys(pipeline: Pipeline) -> None:
    pipeline.request("/v1/search", {"query": "quixotic secretive phrase"})
    log = pipeline.data_dir / "api.log"

    def answered() -> list[dict[str, Any]]:
        lines = (json.loads(line) for line in log.read_text().splitlines() if "request.answered" in line)
        return [line for line in lines if line.get("query_chars") == 25]

    # The line is written once the answer is out.
    wait_for(lambda: answered() != [], 10, "the request's line")
    [line] = answered()
    assert {name: line[name] for name in ("route", "status", "tenant", "query_chars", "parts")} == {
        "route": "/v1/search",
        "status": 200,
        "tenant": "local",
        "query_chars": 25,
        "parts": "graph+keyword+names+vector",
    }
    assert "quixotic" not in log.read_text()
    assert KEY not in log.read_text()


async def test_sigterm_ends_it_cleanly_and_a_taken_port_is_said(stack: Stack, tmp_path: Path) -> None:
    write_keys(tmp_path)
    own = Pipeline(
        prefix=f"t{free_ports()}stop",
        kafka_servers=stack.kafka_servers,
        opensearch_url=f"http://127.0.0.1:{free_ports()}",
        data_dir=tmp_path,
        vaults=[],
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        own.settings["HOPLINE_API__PORT"] = str(taken.getsockname()[1])
        refused = own.cli("api")
    assert refused.returncode == 2
    assert "HOPLINE_API__PORT" in refused.stderr
    with running(own):
        own._spawn("api")
        wait_for(lambda: own.http_status("api", "/healthz") == 200, 60, "healthy without OpenSearch")
        assert own.http_status("api", "/readyz") == 503
        own.processes["api"].send_signal(signal.SIGTERM)
        assert own.processes["api"].wait(20) == 0
    assert "Traceback" not in own.log_tail("api")


class TestAdminCommands:
    """`hopline tenants`, `hopline keys`, in this process, over the service's own one."""

    @pytest.fixture
    def run(self, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
        store_key(pipeline.data_dir / "keys.json", "operators-key", OPERATOR)
        monkeypatch.setenv("HOPLINE_API_URL", pipeline.api_url)

        def command(*words: str, key: str = "operators-key") -> Any:
            monkeypatch.setenv("HOPLINE_API_KEY", key)
            return CliRunner().invoke(build_app(), list(words))

        return command

    async def test_a_tenant_and_its_keys(self, run: Callable[..., Any]) -> None:
        made = run("tenants", "create", "acme", "--note", "a fleet", "--limit", "writes_per_second=7")
        assert made.output == "acme  active  writes_per_second=7.0  a fleet\n"
        created = run(
            "keys", "create", "--tenant", "acme", "--agent", "head", "--role", "admin", "--team", "ops"
        )
        admin = created.stdout.strip()
        key_id = admin.split("_")[1]
        said = f"Key {key_id} of head in acme (admin). It is shown this once:\n"
        assert (created.exit_code, created.stderr) == (0, said)
        assert run("keys", "list", key=admin).output == f"{key_id}  active  acme/head teams ops (admin)\n"
        own = json.loads(run("keys", "create", "--agent", "ada", "--json", key=admin).stdout)
        assert (own["tenant"], own["roles"]) == ("acme", ["agent"])
        rotated = run("keys", "rotate", own["key_id"], key=admin).stdout.strip()
        assert rotated != own["key"]
        assert run("keys", "revoke", own["key_id"], key=admin).output.startswith(
            f"{own['key_id']}  revoked  "
        )
        assert run("tenants", "limits", "acme").output == "acme  active  a fleet\n"
        assert run("tenants", "suspend", "acme").output == "acme  suspended  a fleet\n"
        refused = run("keys", "list", key=admin)
        assert "suspended" in str(refused.exception)
        assert run("tenants", "resume", "acme").output == "acme  active  a fleet\n"
        assert json.loads(run("tenants", "show", "acme", "--json").stdout)["limits"] == {}
        assert "acme" in run("tenants", "list").output

    async def test_the_audit_log_and_refusals(self, run: Callable[..., Any]) -> None:
        for name in ("zeta", "local"):
            run("tenants", "create", name)
        local = json.loads(run("keys", "create", "--agent", "x", "--json").stdout)
        assert local["tenant"] == "local"
        wait_for(lambda: "tenant.create  zeta" in run("tenants", "audit", "zeta").output, 10, "the entry")
        page = json.loads(run("tenants", "audit", "--limit", "1", "--json").stdout)
        assert [len(page["entries"]), page["next_cursor"] is None] == [1, False]
        for words, says in (
            (("keys", "create", "--agent", "a/b"), "body.agent"),
            (("keys", "revoke", "none"), "No such key"),
            (("tenants", "create", "zeta"), "There is a tenant of this name already"),
            (("tenants", "create", "t", "--limit", "wishes=1"), "body.limits.wishes"),
            (("tenants", "create", "t", "--limit", "writes_per_second"), "give NAME=NUMBER"),
        ):
            assert says in str(run(*words).exception), words
        assert "role `admin`" in str(run("tenants", "create", "t", key=KEY).exception)
