"""Two tenants with identical paths and names: what one may read or curate never shows, or changes, the other's.

Random probes over the running service, and the command line of entities as its users type it.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from hopline.client import HoplineClient
from indexers.domain.identity import AgentId, Principal, TenantId
from search_api.keys import store_key
from streams.rebuild import AGENTS
from tests.conftest import Stack
from tests.pipeline import Pipeline, running, wait_for, write_keys

pytestmark = pytest.mark.engines

KEYS = {"t1": "key-of-tenant-one-0123456789abcdef", "t2": "key-of-tenant-two-0123456789abcdef"}
#: Of the same agent, with the role of a curator.
CURATOR = "key-of-a-curator-of-one-0123456789abcdef"
PATHS = ("ledger.md", "vault-key.md", "sub/notes.md", "회의록.md")
SECRET = {"t1": "yarrowmint", "t2": "zephyrine"}


def write_vault(folder: Path, tenant: str) -> Path:
    root = folder / tenant
    for path in PATHS:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"---\ntags: [audit]\naliases: [the {path}]\n---\n# Copper ledger\n\n"
            f"{SECRET[tenant]} of the Copper Guild, 부산에서. See [[vault-key]], [[ledger]] and [[sub/notes]].\n\n"
            f"INC-2041 of {SECRET[tenant]} was INC-2042 once, QX-77 not; mail {SECRET[tenant]}@example.com.\n",
            encoding="utf-8",
        )
    (root / f"only-{tenant}.md").write_text(f"# Only {tenant}\n\n{SECRET[tenant]} links [[ledger]].\n")
    return root


def write_own(folder: Path) -> Path:
    root = folder / "own"
    root.mkdir()
    (root / "private.md").write_text(f"# Private\n\nQX-77 is mine. {SECRET['t1']}\n", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def pipeline(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("tenants")
    own = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=folder,
        # One that was killed is back at once, without the wait for its session's end.
        settings={"HOPLINE_INGEST__INSTANCE_ID": "ingest"},
        vaults=[
            *({"name": t, "path": str(write_vault(folder, t)), "tenant": t} for t in KEYS),
            {
                "name": "own",
                "path": str(write_own(folder)),
                "tenant": "t1",
                "agent": "me",
                "scope": "personal",
            },
        ],
    )
    write_keys(folder, **KEYS)
    curator = Principal(tenant_id=TenantId("t1"), agent_id=AgentId("me"), roles=("agent", "curator"))
    store_key(folder / "keys.json", CURATOR, curator)
    with running(own, *AGENTS, "watch", "api"):
        own.wait_idle()
        yield own


def ids_of(pipeline: Pipeline, tenant: str) -> list[str]:
    _, answer = pipeline.request(
        "/v1/search", {"query": SECRET[tenant], "page_size": 50, "parts": ["keyword"]}, KEYS[tenant]
    )
    return [hit["doc_id"] for hit in answer["hits"]]


def test_c13_random_probes_show_nothing_of_the_neighbour(pipeline: Pipeline) -> None:
    ids = {tenant: ids_of(pipeline, tenant) for tenant in KEYS}
    assert {tenant: len(found) for tenant, found in ids.items()} == {"t1": 6, "t2": 5}
    rnd = random.Random(7)  # noqa: S311 - reproducible probes
    # More of them, over every route: tests/contract/test_api_probes.py.
    for _ in range(60):
        asker, owner = rnd.sample(sorted(KEYS), 2)
        doc_id = rnd.choice(ids[owner])
        suffix = rnd.choice(["", "/content", "/links", "/backlinks", "/mentions"])
        unknown = f"{rnd.randrange(16**8):08x}-0000-5000-8000-000000000000"
        denied = pipeline.request(f"/v1/documents/{doc_id}{suffix}", key=KEYS[asker])
        missing = pipeline.request(f"/v1/documents/{unknown}{suffix}", key=KEYS[asker])
        assert denied[0] == missing[0] == 404
        assert without_request(denied[1], doc_id) == without_request(missing[1], unknown)
        body: dict[str, Any] = {
            "query": rnd.choice([SECRET[owner], "Copper Guild", "audit", "ledger", "부산", f"only-{owner}"]),
            "explain": rnd.choice([True, False]),
            "page_size": rnd.choice([1, 3, 50]),
            "filters": rnd.choice([{}, {"tags": ["audit"]}]),
        }
        status, answer = pipeline.request("/v1/search", body, KEYS[asker])
        assert status == 200
        assert {hit["doc_id"] for hit in answer["hits"]} <= set(ids[asker])
        assert SECRET[owner] not in json.dumps(answer).replace(json.dumps(body["query"]), "")
        assert f"only-{owner}.md" not in json.dumps(answer)


def test_own_links_and_content_stay_within_the_tenant(pipeline: Pipeline) -> None:
    for tenant, key in KEYS.items():
        other = SECRET["t1" if tenant == "t2" else "t2"]
        own = set(ids_of(pipeline, tenant))
        for doc_id in own:
            for suffix in ("", "/content", "/links", "/backlinks", "/mentions"):
                status, answer = pipeline.request(f"/v1/documents/{doc_id}{suffix}", key=key)
                assert status == 200
                assert other not in json.dumps(answer, ensure_ascii=False)
            _, links = pipeline.request(f"/v1/documents/{doc_id}/links", key=key)
            assert {link["to"]["doc_id"] for link in links["links"] if link["to"]} <= own


def entities_of(pipeline: Pipeline, tenant: str, **params: str) -> list[dict[str, Any]]:
    query = urlencode({"page_size": "200", **params})
    status, answer = pipeline.request(f"/v1/entities?{query}", key=KEYS[tenant])
    assert (status, answer["next_cursor"]) == (200, None)
    found: list[dict[str, Any]] = answer["entities"]
    return found


def test_c13_names_of_the_neighbour_do_not_exist(pipeline: Pipeline) -> None:
    ids = {tenant: {e["entity_id"] for e in entities_of(pipeline, tenant)} for tenant in KEYS}
    assert not ids["t1"] & ids["t2"]
    rnd = random.Random(8)  # noqa: S311 - reproducible probes
    for _ in range(40):
        asker, owner = rnd.sample(sorted(KEYS), 2)
        entity_id = rnd.choice(sorted(ids[owner]))
        unknown = f"{rnd.randrange(16**8):08x}-0000-5000-8000-000000000000"
        suffix = rnd.choice(["", "/mentions", "/relations", "/history"])
        denied, missing = (
            pipeline.request(f"/v1/entities/{one}{suffix}", key=KEYS[asker]) for one in (entity_id, unknown)
        )
        assert denied[0] == missing[0] == 404
        assert without_request(denied[1], entity_id) == without_request(missing[1], unknown)
        words = rnd.choice([SECRET[owner], "INC-2041", f"{SECRET[owner]}@example.com", "QX-77"])
        found = entities_of(pipeline, asker, q=words)
        assert {entity["entity_id"] for entity in found} <= ids[asker]
        assert SECRET[owner] not in json.dumps(found)
    for tenant, key in KEYS.items():
        other = SECRET["t1" if tenant == "t2" else "t2"]
        for entity in entities_of(pipeline, tenant, label="incident"):
            _, said = pipeline.request(f"/v1/entities/{entity['entity_id']}/mentions", key=key)
            assert len(said["mentions"]) == len(PATHS)
            assert other not in json.dumps(said)


def random_command(
    rnd: random.Random, ids: dict[str, list[str]], entities: dict[str, list[str]]
) -> list[str]:
    """Of any reading command, or one that changes what it names: with ids, words and paths of anybody."""
    doc_id, owner = rnd.choice([(one, owner) for owner, found in ids.items() for one in found])
    entity = rnd.choice([one for found in entities.values() for one in found])
    words = rnd.choice([SECRET[owner], "Copper Guild", f"only-{owner}", "부산", "INC-2041"])
    document = rnd.choice([doc_id, "ledger.md", f"only-{owner}.md", "회의록.md"])
    command = rnd.choice(
        [
            ["search", words, "--explain"], ["context", words], ["read", document], ["links", document],
            ["backlinks", document], ["related", document], ["graph", document, "--depth", "3"],
            ["entity", "show", entity], ["entity", "mentions", rnd.choice([entity, "INC-2041"])],
            ["entity", "in", document], ["entity", "list"], ["events", doc_id], ["whoami"],
            ["forget", rnd.choice(ids["t2"])], ["erase", rnd.choice(ids["t2"]), "--yes"], ["keys", "list"],
            ["entity", "block", rnd.choice(entities["t2"])], ["tenants", "show", owner],
        ]
    )  # fmt: skip
    return [*command, *rnd.choice([[], ["--json"]])]


@pytest.mark.parametrize(
    "probes", [pytest.param(4, id="short"), pytest.param(300, id="full", marks=pytest.mark.soak)]
)
def test_c13_random_commands_show_nothing_of_the_neighbour(pipeline: Pipeline, probes: int) -> None:
    """As `t1`, who sees everything of its own and changes nothing of its neighbour's."""
    ids = {tenant: ids_of(pipeline, tenant) for tenant in KEYS}
    entities = {tenant: [e["entity_id"] for e in entities_of(pipeline, tenant)] for tenant in KEYS}
    theirs = entities_of(pipeline, "t2")
    rnd = random.Random(9)  # noqa: S311 - reproducible probes
    codes: set[int] = set()
    for _ in range(probes):
        words = random_command(rnd, ids, entities)
        done = pipeline.cli(*words, key=KEYS["t1"])
        codes.add(done.returncode)
        shown = done.stdout + done.stderr
        assert "Traceback" not in shown, words
        said = " ".join(words)
        for foreign in (SECRET["t2"], "only-t2", *ids["t2"], *entities["t2"]):
            assert foreign not in shown or foreign in said, (words, shown)
    assert codes <= {0, 1, 2}
    assert 0 in codes
    assert (ids_of(pipeline, "t2"), entities_of(pipeline, "t2")) == (ids["t2"], theirs)


def test_entities_on_the_command_line(pipeline: Pipeline) -> None:
    theirs = entities_of(pipeline, "t2", label="incident")

    def run(*words: str, code: int = 0) -> str:
        done = pipeline.cli(*words, key=CURATOR)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    listed = json.loads(run("entity", "list", "--label", "incident", "--json"))["entities"]
    assert {(e["name"], e["mention_count"]) for e in listed} == {("INC-2041", 4), ("INC-2042", 4)}
    said = run("entity", "mentions", "inc-2041", "--limit", "1")
    assert "INC-2041 of yarrowmint was INC-2042 once" in said
    assert "QX-77  code" in run("entity", "in", "회의록.md")
    assert run("entity", "relations", "INC-2041") == "No relations.\n"
    assert "no entity is called 'INC-9999'" in run("entity", "show", "INC-9999", code=1)
    twice = run("entity", "show", "QX-77", code=2)
    assert "2 entities are called 'QX-77'" in twice
    assert "code in agent:me: " in twice

    assert run("entity", "merge", "INC-2041", "INC-2042", "--reason", "one and the same").startswith("Done (")
    shown = json.loads(run("entity", "show", "INC-2042", "--json"))
    assert [alias["name"] for alias in shown["entity"]["aliases"]] == ["INC-2042"]
    [entry] = shown["history"]
    assert (entry["kind"], entry["by"], entry["reason"]) == ("merge", "me", "one and the same")
    assert "the same entity already" in run("entity", "merge", "INC-2041", "INC-2042", code=2)
    run("entity", "unmerge", "INC-2041", code=2)
    run("entity", "unmerge", "INC-2041", "--merge", entry["event_id"])
    assert len(entities_of(pipeline, "t1", label="incident")) == 2

    run("entity", "rename", "INC-2042", "The quiet one")
    assert "The quiet one  (incident, shared)" in run("entity", "show", "the quiet one")
    run("entity", "block", "The quiet one", "--reason", "noise")
    assert [e["name"] for e in entities_of(pipeline, "t1", label="incident")] == ["INC-2041"]
    assert "The quiet one  incident  4 documents" in run("entity", "list", "--blocked")
    run("entity", "unblock", "The quiet one")
    assert run("entity", "proposals", "--label", "incident") == "No proposals.\n"
    run("entity", "accept", "no-such-proposal", code=1)
    assert entities_of(pipeline, "t2", label="incident") == theirs


def test_the_client_reads_every_page_of_the_graph(pipeline: Pipeline) -> None:
    with HoplineClient(pipeline.api_url, KEYS["t2"]) as client:
        lines = list(client.entities_all(label="incident", page_size=1))
        assert sorted(line.name for line in lines) == ["INC-2041", "INC-2042"]
        entity = client.entity(lines[0].entity_id)
        assert (entity.aliases, list(client.relations_all(entity.entity_id))) == ([], [])
        mentions = list(client.mentions_all(entity.entity_id))
        assert {mention.document.path for mention in mentions} == set(PATHS)
        named = list(client.mentioned_in(mentions[0].document.doc_id))
        assert {lines[0].name, lines[1].name, "QX-77"} <= {mention.entity.name for mention in named}
        [first, *_] = client.entities("INC-2042", label="incident").entities
        assert first.name == "INC-2042"


def test_labels_on_the_command_line(pipeline: Pipeline, tmp_path: Path) -> None:
    def run(*words: str, code: int = 0, key: str = CURATOR, stdin: str | None = None) -> str:
        done = pipeline.cli(*words, key=key, stdin=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    owner = "agent:me"
    file = tmp_path / "labels.json"
    file.write_text(run("labels", "show", owner, "--json"))
    assert "person  from 0.5" in run("labels", "show", owner)
    wanted = json.loads(file.read_text())
    wanted["patterns"] = [{"label": "owner", "pattern": r"\bmine\b"}]
    file.write_text(json.dumps(wanted))
    after = json.loads(run("labels", "set", str(file), owner, "--wait", "--json"))
    assert (after["version"], after["progress"]) == (wanted["version"] + 1, {"done": 1, "total": 1})
    pipeline.wait_idle()
    assert "mine  owner  1 document" in run("entity", "list", "--label", "owner")
    wanted["patterns"] = []
    refused = run("labels", "set", "-", owner, stdin=json.dumps(wanted), code=1)
    assert "by now" in refused
    assert "body.labels.0.threshold" in run(
        "labels", "set", "-", owner, stdin='{"labels": [{"name": "x", "threshold": 2}]}', code=2
    )
    assert "is no JSON" in run("labels", "set", "-", owner, stdin="{", code=2)
    assert "role" in run("labels", "set", str(file), "shared", code=1, key=KEYS["t1"])
    assert "No such namespace" in run("labels", "show", "team:ops", code=1)


def test_verify_of_one_tenant_speaks_of_that_tenant(pipeline: Pipeline) -> None:
    for tenant, other in (("t1", "t2"), ("t2", "t1")):
        checked = pipeline.cli("verify", "--root", tenant, "--json")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert f"only-{other}.md" not in checked.stdout + checked.stderr
    pipeline.stop("watch")
    file = Path(pipeline.vaults[1]["path"], "only-t2.md")
    text = file.read_text()
    try:
        file.unlink()
        assert "only-t2.md" not in pipeline.cli("verify", "--root", "t1", "--json").stdout
        own = pipeline.cli("verify", "--root", "t2", "--json")
        assert own.returncode == 1
        assert "only-t2.md" in own.stdout
    finally:
        file.write_text(text)
        pipeline.start("watch")
        pipeline.wait_idle()


def without_request(problem: dict[str, Any], doc_id: str) -> str:
    """The answer but for what names the request itself."""
    kept = {k: v for k, v in problem.items() if k not in ("request_id", "instance")}
    return json.dumps(kept, sort_keys=True).replace(doc_id, "ID")


def test_memories_of_an_agent_without_a_vault_survive_the_end_of_a_worker(pipeline: Pipeline) -> None:
    key = "key-of-a-writer-of-one-0123456789abcdef"
    writer = Principal(tenant_id=TenantId("t1"), agent_id=AgentId("writer"))
    store_key(pipeline.data_dir / "keys.json", key, writer)

    def call(path: str, body: Any = None) -> Any:
        status, answer = pipeline.request(path, body, key)
        assert status in (200, 202), answer
        return answer

    first = call("/v1/memories?wait_for=linked&timeout_seconds=8", {"content": "Kestrel of Alice Novak."})
    assert first["event"]["state"] == "linked"
    pipeline.kill("ingest")
    second = call("/v1/memories", {"content": "Merlin, written while nobody ingests.", "title": "Merlin"})
    pipeline.start("ingest")
    event = f"/v1/events/{second['event_id']}?wait_for=linked&timeout_seconds=8"
    wait_for(lambda: call(event)["state"] == "linked", 30, "the event linked")
    file = pipeline.data_dir / "memories/t1/personal/writer" / second["path"]
    file.write_text(file.read_text().replace("Merlin, written", "Peregrine, edited"))

    def found(words: str) -> list[str]:
        hits: list[dict[str, str]] = call("/v1/search", {"query": words, "parts": ["keyword"]})["hits"]
        return [hit["path"] for hit in hits]

    wait_for(lambda: found("peregrine") == [second["path"]], 15, "the edit found")
    pipeline.wait_idle()
    done = pipeline.cli("verify", "--root", "t1.personal.writer", "--json")
    [report] = json.loads(done.stdout)["roots"]
    assert (done.returncode, report["files"], report["counts"]) == (0, 2, {})
    assert [
        pipeline.request(f"/v1/documents/{first['doc_id']}", key=other)[0] for other in KEYS.values()
    ] == [404, 404]
