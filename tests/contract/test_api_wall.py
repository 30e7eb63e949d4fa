"""C13, as far as search and reading go: what one tenant, agent or team asks never shows another's."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from indexers.domain.identity import Principal
from tests.api import Service, principal, running_service, vault
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

#: Who may ask, and the only vaults that each may see.
ASKERS: dict[str, tuple[Principal, set[str]]] = {
    "t1": (principal("t1"), {"t1-shared", "t1-ada"}),
    "t1-bob": (principal("t1", "bob", "ops"), {"t1-shared", "t1-ops"}),
    "t2": (principal("t2"), {"t2-shared"}),
    "t2-ops": (principal("t2", "bob", "ops"), {"t2-shared"}),
}
VAULTS: dict[str, dict[str, Any]] = {
    "t1-shared": {"tenant": "t1"},
    "t1-ada": {"tenant": "t1", "scope": "personal"},
    "t1-ops": {"tenant": "t1", "agent": "carol", "scope": "team", "team": "ops"},
    "t2-shared": {"tenant": "t2"},
}
WORD = {"t1-shared": "yarrowmint", "t1-ada": "quillwort", "t1-ops": "tansyroot", "t2-shared": "zephyrine"}
PATHS = ("ledger.md", "vault-key.md", "sub/notes.md")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("wall")
    roots = [
        vault(
            folder / name,
            dict.fromkeys(
                PATHS,
                f"---\ntags: [audit]\n---\n# Copper ledger\n\n{WORD[name]} of the Copper Guild."
                " [[vault-key]] [[ledger]] [[sub/notes]]\n",
            ),
            **owner,
        )
        for name, owner in VAULTS.items()
    ]
    principals = [who for who, _ in ASKERS.values()]
    async with running_service(stack.opensearch_url, folder, vaults=roots, principals=principals) as running:
        yield running


def ids(service: Service, names: set[str]) -> set[str]:
    return {doc_id for (name, _), doc_id in service.ids.items() if name in names}


@pytest.mark.parametrize("seed", range(4))
async def test_c13_random_probes_show_only_what_the_asker_may_see(service: Service, seed: int) -> None:
    rnd = random.Random(seed)  # noqa: S311 - reproducible probes
    for _ in range(40):
        who, names = ASKERS[rnd.choice(sorted(ASKERS))]
        foreign_words = {word for name, word in WORD.items() if name not in names}
        query = rnd.choice([*WORD.values(), "Copper Guild", "copper ledger audit", "vault-key"])
        request: dict[str, Any] = {
            "explain": rnd.choice([True, False]),
            "page_size": rnd.choice([1, 2, 50]),
            "parts": rnd.choice([["keyword"], ["vector"], ["keyword", "vector"]]),
            "filters": rnd.choice(
                [{}, {"tags": ["audit"]}, {"path_prefix": "sub/"}, {"scope": ["personal", "team"]}]
            ),
        }
        answer = await service.search(who, query, **request)
        assert {hit["doc_id"] for hit in answer["hits"]} <= ids(service, names)
        shown = json.dumps(answer, ensure_ascii=False)
        assert not any(word in shown for word in foreign_words)
        assert answer["candidates"] <= len(ids(service, names))


@pytest.mark.parametrize("suffix", ["", "/content", "/links", "/backlinks"])
async def test_c13_by_id_another_owners_document_is_one_that_does_not_exist(
    service: Service, suffix: str
) -> None:
    missing = "deadbeef-0000-5000-8000-000000000000"
    for who, names in ASKERS.values():
        unknown = await service.get(who, f"/v1/documents/{missing}{suffix}", **{"x-request-id": "same"})
        for doc_id in ids(service, set(VAULTS)):
            answer = await service.get(who, f"/v1/documents/{doc_id}{suffix}", **{"x-request-id": "same"})
            if doc_id in ids(service, names):
                assert answer.status_code == 200
            else:
                assert answer.status_code == unknown.status_code == 404
                assert answer.content == unknown.content
                assert answer.headers == unknown.headers


async def test_c13_links_and_backlinks_lead_only_to_what_the_asker_may_see(service: Service) -> None:
    for who, names in ASKERS.values():
        seen = ids(service, names)
        for doc_id in seen:
            links = (await service.get(who, f"/v1/documents/{doc_id}/links")).json()["links"]
            assert {link["to"]["doc_id"] for link in links if link["to"]} <= seen
            backlinks = (await service.get(who, f"/v1/documents/{doc_id}/backlinks")).json()["links"]
            assert {link["from"]["doc_id"] for link in backlinks} <= seen
            content = (await service.get(who, f"/v1/documents/{doc_id}/content")).json()
            assert [name for name in names if WORD[name] in content["text"]] != []


async def test_each_asker_sees_all_that_is_theirs(service: Service) -> None:
    for who, names in ASKERS.values():
        for part in (["keyword"], ["vector"]):
            answer = await service.search(who, "Copper ledger", parts=part, page_size=50)
            assert {hit["doc_id"] for hit in answer["hits"]} == ids(service, names)


async def test_the_tenant_of_a_cursor_can_not_be_changed(service: Service) -> None:
    one, other = ASKERS["t1"][0], ASKERS["t2"][0]
    cursor = (await service.search(one, "Copper", page_size=1))["next_cursor"]
    answer = await service.post(other, {"query": "Copper", "cursor": cursor})
    assert answer.status_code == 422
