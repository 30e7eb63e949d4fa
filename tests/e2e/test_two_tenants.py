"""Two tenants with identical paths: what one may read never shows the other. Random probes over the running service."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.rebuild import AGENTS
from tests.conftest import Stack
from tests.pipeline import Pipeline, running, write_keys

pytestmark = pytest.mark.engines

KEYS = {"t1": "key-of-tenant-one-0123456789abcdef", "t2": "key-of-tenant-two-0123456789abcdef"}
PATHS = ("ledger.md", "vault-key.md", "sub/notes.md", "회의록.md")
SECRET = {"t1": "yarrowmint", "t2": "zephyrine"}


def write_vault(folder: Path, tenant: str) -> Path:
    root = folder / tenant
    for path in PATHS:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"---\ntags: [audit]\naliases: [the {path}]\n---\n# Copper ledger\n\n"
            f"{SECRET[tenant]} of the Copper Guild, 부산에서. See [[vault-key]], [[ledger]] and [[sub/notes]].\n",
            encoding="utf-8",
        )
    (root / f"only-{tenant}.md").write_text(f"# Only {tenant}\n\n{SECRET[tenant]} links [[ledger]].\n")
    return root


@pytest.fixture(scope="module")
def pipeline(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("tenants")
    own = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=folder,
        vaults=[{"name": t, "path": str(write_vault(folder, t)), "tenant": t} for t in KEYS],
    )
    write_keys(folder, **KEYS)
    with running(own, *AGENTS, "watch", "api"):
        own.wait_idle()
        yield own


def ids_of(pipeline: Pipeline, tenant: str) -> list[str]:
    _, answer = pipeline.request("/v1/search", {"query": SECRET[tenant], "page_size": 50}, KEYS[tenant])
    return [hit["doc_id"] for hit in answer["hits"]]


def test_c13_random_probes_show_nothing_of_the_neighbour(pipeline: Pipeline) -> None:
    ids = {tenant: ids_of(pipeline, tenant) for tenant in KEYS}
    assert {tenant: len(found) for tenant, found in ids.items()} == {"t1": 5, "t2": 5}
    rnd = random.Random(7)  # noqa: S311 - reproducible probes
    for _ in range(200):
        asker, owner = rnd.sample(sorted(KEYS), 2)
        doc_id = rnd.choice(ids[owner])
        suffix = rnd.choice(["", "/content", "/links", "/backlinks"])
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
            for suffix in ("", "/content", "/links", "/backlinks"):
                status, answer = pipeline.request(f"/v1/documents/{doc_id}{suffix}", key=key)
                assert status == 200
                assert other not in json.dumps(answer, ensure_ascii=False)
            _, links = pipeline.request(f"/v1/documents/{doc_id}/links", key=key)
            assert {link["to"]["doc_id"] for link in links["links"] if link["to"]} <= own


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
