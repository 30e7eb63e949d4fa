"""C13, as far as search and reading go: what one tenant, agent or team asks never shows another's."""

from __future__ import annotations

import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, Principal
from indexers.opensearch.rows import Index
from indexers.settings import VaultRoot
from search_api.graph.kinds import GRAPH_PARTS
from search_api.models import PARTS
from tests.agents import agent_config
from tests.api import Service, principal, running_service, vault
from tests.conftest import Stack
from tests.linking import opened_link_rig

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

#: Who may ask, and the only vaults that each may see.
ASKERS: dict[str, tuple[Principal, set[str]]] = {
    "t1": (principal("t1"), {"t1-shared", "t1-ada"}),
    "t1-bob": (principal("t1", "bob", "ops"), {"t1-shared", "t1-ops"}),
    "t2": (principal("t2"), {"t2-shared"}),
    "t2-ops": (principal("t2", "bob", "ops"), {"t2-shared"}),
    "t1-solo": (principal("t1", "eve"), {"t1-shared"}),
}
VAULTS: dict[str, dict[str, Any]] = {
    "t1-shared": {"tenant": "t1"},
    "t1-ada": {"tenant": "t1", "scope": "personal"},
    "t1-ops": {"tenant": "t1", "agent": "carol", "scope": "team", "team": "ops"},
    "t2-shared": {"tenant": "t2"},
}
WORD = {"t1-shared": "yarrowmint", "t1-ada": "quillwort", "t1-ops": "tansyroot", "t2-shared": "zephyrine"}
#: Everything that the graph can do.
EVERY_PART: dict[str, Any] = {"graph": {"depth": 3} | {f"{part}_weight": 0.5 for part in GRAPH_PARTS}}
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
    prefix = f"t{os.urandom(6).hex()}"
    async with running_service(
        stack.opensearch_url, folder, vaults=roots, principals=principals, prefix=prefix
    ) as running:
        await name_all(stack, prefix, roots)
        yield running


async def name_all(stack: Stack, prefix: str, roots: list[VaultRoot]) -> None:
    """The same names in the same paths of every vault, and one of its own; a curator spoke once in each."""
    async with opened_link_rig(agent_config(stack, prefix, roots)) as link:
        for root in roots:
            home = root.namespace
            link.config = agent_config(stack, prefix, [root])
            told = [
                link.told(
                    path, "crew", "Copper Guild", "Copper Guilt Crew", WORD[root.name], version=1, home=home
                )
                for path in PATHS
            ]
            await link.feed(told)
            await link.feed(link.command("rename", "crew", WORD[root.name], name=f"The {WORD[root.name]}"))


def entity_ids(name: str, surface: str = "Copper Guild") -> str:
    """Of a vault's name."""
    owner = VAULTS[name]
    home = VaultRoot(name=name, path=Path("/"), **{"agent": "ada", **owner}).namespace
    return EntityNamespace.of(home).name_id("crew", name_key(surface, "crew"))


def ids(service: Service, names: set[str]) -> set[str]:
    return {doc_id for (name, _), doc_id in service.ids.items() if name in names}


def check_counts(answer: dict[str, Any], documents: int) -> None:
    """No count of names, edges or rows includes what the asker may not see."""
    for hit in answer["hits"]:
        for reason in hit["reasons"]:
            assert all(name["documents"] <= documents for name in reason["names"])
    if (trace := answer["trace"]) is not None:
        assert all(count <= documents for count in trace["lists"].values())
        one_a_document = [stage["stage"] for stage in trace["stages"]].index("fuse")
        assert all(stage["candidates_out"] <= documents for stage in trace["stages"][one_a_document:])
        assert trace["graph"] is None or trace["graph"]["documents"] in (0, documents)


async def test_c13_other_tenants_rows_change_no_score_of_the_graph(service: Service) -> None:
    """Both tenants' shared vaults are equal but for a word: so is what the graph says."""
    answers = []
    for who in ("t1-solo", "t2"):
        answer = await service.search(
            ASKERS[who][0], "Copper Guild", explain=True, page_size=50, options=EVERY_PART, parts=["graph"]
        )
        answers.append(
            {hit["path"]: [(r["part"], r["raw_score"]) for r in hit["reasons"]] for hit in answer["hits"]}
        )
    assert answers[0] == answers[1] != {}


@pytest.mark.parametrize("seed", range(4))
async def test_c13_random_probes_show_only_what_the_asker_may_see(service: Service, seed: int) -> None:
    rnd = random.Random(seed)  # noqa: S311 - reproducible probes
    for _ in range(40):
        who, names = ASKERS[rnd.choice(sorted(ASKERS))]
        foreign_words = {word for name, word in WORD.items() if name not in names}
        query = rnd.choice(
            [
                *WORD.values(),
                "Copper Guild",
                "copper ledger #audit",
                "vault-key",
                "sub/notes.md",
                '"Copper ledger" of ada',
                rnd.choice(sorted(ids(service, set(VAULTS)))),
            ]
        )
        request: dict[str, Any] = {
            "explain": rnd.choice([True, False]),
            "page_size": rnd.choice([1, 2, 50]),
            "parts": rnd.choice([["keyword"], ["vector"], ["names"], ["vector", "graph"], list(PARTS)]),
            "options": rnd.choice([{}, EVERY_PART, {"graph": EVERY_PART["graph"] | {"depth": 1}}]),
            "filters": rnd.choice(
                [{}, {"tags": ["audit"]}, {"path_prefix": "sub/"}, {"scope": ["personal", "team"]}]
            ),
        }
        answer = await service.search(who, query, **request)
        assert {hit["doc_id"] for hit in answer["hits"]} <= ids(service, names)
        shown = json.dumps(answer, ensure_ascii=False)
        assert not any(word in shown for word in foreign_words if word != query)
        assert not any(doc_id in shown for doc_id in ids(service, set(VAULTS) - names) if doc_id != query)
        assert answer["candidates"] <= len(ids(service, names))
        check_counts(answer, len(ids(service, names)))


@pytest.mark.parametrize("suffix", ["", "/content", "/links", "/backlinks", "/mentions"])
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


async def test_c13_entities_are_those_of_what_the_asker_may_see(service: Service) -> None:
    for who, names in ASKERS.values():
        foreign = {word for name, word in WORD.items() if name not in names}
        seen = {entity_ids(name) for name in names}
        for route in ("/v1/entities", "/v1/entities?q=Copper+Guild", "/v1/entities/proposals"):
            answer = (await service.get(who, route)).json()
            assert not any(word in json.dumps(answer) for word in foreign)
        listed = (await service.get(who, "/v1/entities")).json()["entities"]
        assert {e["entity_id"] for e in listed if e["name"] == "Copper Guild"} == seen
        assert {e["name"] for e in listed if e["name"].startswith("The ")} == {
            f"The {WORD[n]}" for n in names
        }
        for name in foreign:
            assert (await service.get(who, f"/v1/entities?q={name}")).json()["entities"] == []
        for entity_id in seen:
            mentions = (await service.get(who, f"/v1/entities/{entity_id}/mentions")).json()["mentions"]
            assert len(mentions) == len(PATHS)
            assert {m["document"]["doc_id"] for m in mentions} <= ids(service, names)


@pytest.mark.parametrize("suffix", ["", "/mentions", "/relations", "/history"])
async def test_c13_by_id_another_owners_entity_is_one_that_does_not_exist(
    service: Service, suffix: str
) -> None:
    missing = "deadbeef-0000-5000-8000-000000000000"
    for who, names in ASKERS.values():
        unknown = await service.get(who, f"/v1/entities/{missing}{suffix}", **{"x-request-id": "same"})
        for name in VAULTS:
            for surface in ("Copper Guild", WORD[name]):
                entity_id = entity_ids(name, surface)
                answer = await service.get(
                    who, f"/v1/entities/{entity_id}{suffix}", **{"x-request-id": "same"}
                )
                if name in names:
                    assert answer.status_code == 200
                else:
                    assert answer.status_code == unknown.status_code == 404
                    assert (answer.content, answer.headers) == (unknown.content, unknown.headers)


async def test_c13_commands_and_labels_of_others_are_unheard_of(service: Service) -> None:
    spoken = [
        row.source
        for tenant in ("t1", "t2")
        async for row in service.gate.scan(
            Principal.pipeline(principal(tenant).tenant_id), Index.CURATION, {"match_all": {}}
        )
    ]
    owners = {"t1-shared": "shared", "t1-ada": "agent:ada", "t1-ops": "team:ops", "t2-shared": "shared"}
    assert len(spoken) == len(VAULTS)
    for who, names in ASKERS.values():
        mine = {(VAULTS[name]["tenant"], owners[name]) for name in names}
        for row in spoken:
            state = (await service.get(who, f"/v1/entities/commands/{row['event_id']}")).json()["state"]
            heard = (row["tenant_id"], row["namespace"]) in mine
            assert state == ("applied" if heard else "accepted")
        for owner in ("shared", "agent:ada", "agent:bob", "agent:carol", "team:ops", "team:sales"):
            allowed = owner in {"shared", f"agent:{who.agent_id}", *(f"team:{team}" for team in who.teams)}
            answer = await service.get(who, f"/v1/namespaces/{owner}/labels")
            assert answer.status_code == (200 if allowed else 404), owner


async def test_the_tenant_of_an_entity_cursor_can_not_be_changed(service: Service) -> None:
    one, other = ASKERS["t1"][0], ASKERS["t2"][0]
    cursor = (await service.get(one, "/v1/entities?page_size=1")).json()["next_cursor"]
    answer = await service.get(other, f"/v1/entities?page_size=1&cursor={cursor}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.cursor")
