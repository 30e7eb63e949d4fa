"""A change on disk is a change in the search: edits, renames, deletions, touches, through the running pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.rebuild import AGENTS
from tests.conftest import Stack
from tests.pipeline import Pipeline, running, wait_for, write_keys

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def pipeline(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("freshness")
    vault = folder / "vault"
    vault.mkdir()
    (vault / "plan.md").write_text("# Plan\n\nWe follow [[recipe]] and [[later]].\n")
    (vault / "recipe.md").write_text("# Recipe\n\nTake two lemons.\n")
    own = Pipeline(
        prefix=f"t{os.urandom(5).hex()}",
        kafka_servers=stack.kafka_servers,
        opensearch_url=stack.opensearch_url,
        data_dir=folder,
        vaults=[{"name": "main", "path": str(vault)}],
    )
    write_keys(folder)
    with running(own, *AGENTS, "watch", "api"):
        own.wait_idle()
        yield own


def vault_of(pipeline: Pipeline) -> Path:
    return Path(pipeline.vaults[0]["path"])


def test_edits_replace_the_words(pipeline: Pipeline) -> None:
    file = vault_of(pipeline) / "diary.md"
    for number in range(10):
        file.write_text(f"# Diary\n\nToday it was quorl{number:03d}.\n")
        wait_for(pipeline.finds(f"quorl{number:03d}", ["diary.md"]), 20, "new word found")
        if number:
            wait_for(pipeline.finds(f"quorl{number - 1:03d}", []), 20, "old word gone")


def test_c04_atomic_save(pipeline: Pipeline) -> None:
    vault = vault_of(pipeline)
    before = pipeline.request("/v1/search", {"query": "lemons", "parts": ["keyword"]})[1]["hits"][0]["doc_id"]
    temporary = vault / ".recipe.md.k3z1"
    temporary.write_text("# Recipe\n\nTake three lemons.\n")
    temporary.rename(vault / "recipe.md")
    wait_for(pipeline.finds("three", ["recipe.md"]), 20, "new text found")
    wait_for(lambda: "recipe.md" not in pipeline.paths_for("two", parts=["keyword"]), 20, "old text gone")
    hits = pipeline.request("/v1/search", {"query": "lemons", "parts": ["keyword"]})[1]["hits"]
    assert [(hit["path"], hit["doc_id"]) for hit in hits] == [("recipe.md", before)]
    _, backlinks = pipeline.request(f"/v1/documents/{before}/backlinks")
    assert [link["from"]["path"] for link in backlinks["links"]] == ["plan.md"]


def test_a_rename_keeps_vectors_and_mends_links(pipeline: Pipeline) -> None:
    vault = vault_of(pipeline)
    (vault / "draft.md").write_text("# Something else\n\nThe bollard murmured velvetly.\n")
    wait_for(pipeline.finds("velvetly", ["draft.md"]), 20, "found")
    pipeline.wait_idle()
    embedded = pipeline.metric("embed", 'hopline_stream_embeddings_total{outcome="computed"}')
    (vault / "draft.md").rename(vault / "later.md")
    wait_for(
        pipeline.finds("velvetly", ["later.md"]),
        20,
        "found under the new path",
    )
    pipeline.wait_idle()
    assert pipeline.paths_for("velvetly", parts=["vector"])[0] == "later.md"
    assert pipeline.metric("embed", 'hopline_stream_embeddings_total{outcome="computed"}') == embedded
    moved = pipeline.request("/v1/search", {"query": "velvetly", "parts": ["keyword"]})[1]["hits"][0][
        "doc_id"
    ]

    def linked() -> bool:
        return [
            link["from"]["path"] for link in pipeline.request(f"/v1/documents/{moved}/backlinks")[1]["links"]
        ] == ["plan.md"]

    wait_for(linked, 20, "the dangling link of plan.md found its target")
    (vault / "later.md").unlink()
    wait_for(pipeline.finds("velvetly", []), 20, "gone")
    assert pipeline.request(f"/v1/documents/{moved}")[0] == 404


def test_a_touch_and_a_rescan_embed_nothing(pipeline: Pipeline) -> None:
    vault = vault_of(pipeline)
    pipeline.wait_idle()
    embedded = pipeline.metric("embed", 'hopline_stream_embeddings_total{outcome="computed"}')
    for file in vault.rglob("*.md"):
        os.utime(file)
    assert pipeline.cli("rescan").returncode == 0
    pipeline.wait_idle()
    assert pipeline.metric("embed", 'hopline_stream_embeddings_total{outcome="computed"}') == embedded
    checked = pipeline.cli("verify", "--json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
