"""Two tenants with personal, team and shared vaults, alike but for one word, over the service in this process."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from indexers.domain.entities.names import name_key
from indexers.domain.identity import INSTALLATION, AgentId, EntityNamespace, Principal, Role, TeamId, TenantId
from indexers.opensearch.rows import Index
from indexers.settings import VaultRoot
from search_api.graph.kinds import GRAPH_PARTS
from search_api.mcp.settings import McpSettings
from search_api.models import PARTS
from streams.admin import delete_topics, ensure_topics
from streams.settings import KafkaSettings
from streams.topics import Topics
from tests.agents import agent_config
from tests.api import Service, key_of, running_service, vault
from tests.conftest import Stack
from tests.linking import opened_link_rig
from tests.probing import Asker, World

PATHS: Final = ("ledger.md", "vault-key.md", "sub/notes.md")
#: Of each tenant: whose the vault is.
KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "shared": {"agent": "ada"},
    "ada": {"agent": "ada", "scope": "personal"},
    "ops": {"agent": "carol", "scope": "team", "team": "ops"},
}
WORDS: Final = {
    "t1-shared": "yarrowmint", "t1-ada": "quillwort", "t1-ops": "tansyroot",
    "t2-shared": "zephyrine", "t2-ada": "moonwort", "t2-ops": "hartstongue",
    # Agents of keys that only an admin of the tenant hears of.
    "t1-admin": "sorrelwood", "t2-admin": "mugwortish",
}  # fmt: skip


def _asker(tenant: str, agent: str, *teams: str, roles: tuple[Role, ...] = ("agent",)) -> Asker:
    who = Principal(
        tenant_id=TenantId(tenant),
        agent_id=AgentId(agent),
        teams=tuple(TeamId(t) for t in teams),
        roles=roles,
    )
    sees = {f"{tenant}-shared", *(f"{tenant}-{team}" for team in teams)}
    own = {"ada": {f"{tenant}-ada"}, "dan": {f"{tenant}-admin"}}.get(agent, set())
    return Asker(
        principal=who,
        key=key_of(who),
        sees=frozenset(sees | own),
    )


ASKERS: Final = [
    asker
    for tenant in ("t1", "t2")
    for asker in (
        _asker(tenant, "ada"),
        _asker(tenant, "bob", "ops"),
        _asker(tenant, "eve", roles=("reader",)),
        _asker(tenant, "cora", roles=("agent", "curator")),
        _asker(tenant, "dan", roles=("admin",)),
    )
]


#: The Copper Guild is another name of it; and two that are nearly alike, so that somebody is asked.
CANONICAL: Final = "Guild of Copper"
PROPOSED: Final = ("Brass Foundry", "Brass Foundries")
OPERATOR: Final = Principal(tenant_id=INSTALLATION, agent_id=AgentId("root"), roles=("admin",))
ASKERS.append(
    Asker(principal=OPERATOR, key=key_of(OPERATOR), sees=frozenset({"t1-admin", "t2-admin"})),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WallWorld:
    service: Service
    world: World


@contextlib.asynccontextmanager
async def opened_world(stack: Stack, folder: Path) -> AsyncIterator[WallWorld]:
    """Rows as the agents leave them; nobody carries out what a probe asks for, so the world stays as it is."""
    roots = [
        vault(folder / f"{tenant}-{kind}", _notes(WORDS[f"{tenant}-{kind}"]), tenant=tenant, **owner)
        for tenant in ("t1", "t2")
        for kind, owner in KINDS.items()
    ]
    prefix = f"t{os.urandom(6).hex()}"
    async with (
        _topics(stack, Topics(prefix)),
        running_service(
            stack.opensearch_url,
            folder,
            vaults=roots,
            principals=[asker.principal for asker in ASKERS],
            prefix=prefix,
            kafka_servers=stack.kafka_servers,
            memories=folder / "memories",
            mcp=McpSettings(allowed_hosts=()),
        ) as service,
    ):
        await _name_all(stack, prefix, roots)
        ids = {root.name: await _ids(service, root) for root in roots}
        for tenant in ("t1", "t2"):
            await _make_events_and_keys(service, tenant, ids)
        yield WallWorld(service=service, world=World(askers=ASKERS, words=WORDS, ids=ids))


@contextlib.asynccontextmanager
async def _topics(stack: Stack, topics: Topics) -> AsyncIterator[None]:
    settings = KafkaSettings(partitions=2)
    await ensure_topics(settings, stack.kafka_servers, topics)
    try:
        yield
    finally:
        await delete_topics(settings, stack.kafka_servers, tuple(topics.retention_ms))


def _notes(word: str) -> dict[str, str]:
    text = (
        f"---\ntags: [audit]\nsession: s-{word}\n---\n# Copper ledger\n\n{word} of the Copper Guild, 부산에서."
        " [[vault-key]] [[ledger]] [[sub/notes]]\n"
    )
    return dict.fromkeys(PATHS, text)


async def _name_all(stack: Stack, prefix: str, roots: list[VaultRoot]) -> None:
    async with opened_link_rig(agent_config(stack, prefix, roots)) as link:
        for root in roots:
            link.config = agent_config(stack, prefix, [root])
            names = ("Copper Guild", CANONICAL, *PROPOSED, WORDS[root.name])
            told = [link.told(path, "crew", *names, version=1, home=root.namespace) for path in PATHS]
            await link.feed(told)
            await link.feed(link.command("merge", "crew", "Copper Guild", CANONICAL))
            word = WORDS[root.name]
            await link.feed(link.command("rename", "crew", word, name=f"The {word}"))


async def _ids(service: Service, root: VaultRoot) -> dict[str, list[str]]:
    owner = EntityNamespace.of(root.namespace)
    pipeline = Principal.pipeline(root.namespace.tenant_id)
    mine = {"term": {"namespace": owner.owner}}
    surfaces = (CANONICAL, "Copper Guild", WORDS[root.name])
    return {
        "doc_id": [doc_id for (name, _), doc_id in service.ids.items() if name == root.name],
        "entity_id": [owner.name_id("crew", name_key(surface, "crew")) for surface in surfaces],
        "alias_id": [owner.name_id("crew", name_key("Copper Guild", "crew"))],
        "proposal_id": [row.row_id async for row in service.gate.scan(pipeline, Index.PROPOSALS, mine)],
        "event_id": [row.row_id async for row in service.gate.scan(pipeline, Index.CURATION, mine)],
    }


async def _make_events_and_keys(service: Service, tenant: str, ids: dict[str, dict[str, list[str]]]) -> None:
    """A memory of each scope that is accepted, and an admin's key."""
    by_agent = {asker.principal.agent_id: asker for asker in ASKERS if asker.principal.tenant_id == tenant}
    for agent, scope, kind in (
        ("ada", "personal", "ada"),
        ("ada", "shared", "shared"),
        ("bob", "team", "ops"),
    ):
        word = WORDS[f"{tenant}-{kind}"]
        body = {"content": f"A word of {word}.", "title": word, "scope": scope}
        answer = await service.http.post("/v1/memories", json=body, headers=_bearer(by_agent[AgentId(agent)]))
        assert answer.status_code == 202, answer.text
        known = ids[f"{tenant}-{kind}"]
        known["event_id"].append(answer.json()["event_id"])
        known["doc_id"].append(answer.json()["doc_id"])
    key: dict[str, Any] = {"agent": WORDS[f"{tenant}-admin"], "roles": ["reader"]}
    answer = await service.http.post("/v1/admin/keys", json=key, headers=_bearer(by_agent[AgentId("dan")]))
    assert answer.status_code == 201, answer.text
    made = await service.http.post("/v1/admin/tenants", json={"tenant": tenant}, headers=_bearer(ASKERS[-1]))
    assert made.status_code == 201, made.text
    nobody = {"agent": "nobody"}
    erased = await service.http.post("/v1/erasures", json=nobody, headers=_bearer(by_agent[AgentId("dan")]))
    ids[f"{tenant}-admin"] = {
        "key_id": [answer.json()["key_id"]],
        "erasure_id": [erased.json()["erasure_id"]],
    }


def _bearer(asker: Asker) -> dict[str, str]:
    return {"authorization": f"Bearer {asker.key}"}


def search_body(rnd: random.Random, world: World, asker: Asker) -> dict[str, Any]:
    every = {"graph": {"depth": 3} | {f"{part}_weight": 0.5 for part in GRAPH_PARTS}}
    known = world.cursors.get("/v1/search", [])
    parts = [["keyword"], ["vector"], ["names"], ["keyword", "graph"], list(PARTS)]
    return {
        "query": _words(rnd, world, asker),
        "explain": rnd.choice([True, False]),
        "page_size": rnd.choice([1, 2, 50]),
        "parts": rnd.choice(parts),
        "options": rnd.choice([{}, every]),
        "filters": _filters(rnd),
        **({"cursor": rnd.choice(known)} if known and rnd.random() < 0.3 else {}),
    }


def context_body(rnd: random.Random, world: World, asker: Asker) -> dict[str, Any]:
    return {
        "query": _words(rnd, world, asker),
        "filters": _filters(rnd),
        "budget_tokens": rnd.choice([100, 1_000]),
    }


def _words(rnd: random.Random, world: World, asker: Asker) -> str:
    return rnd.choice(
        [
            *world.words.values(), "Copper Guild", "copper ledger #audit", "vault-key", '"Copper ledger" of ada',
            "부산", world.any_id(rnd, "doc_id", asker),
        ]
    )  # fmt: skip


def _filters(rnd: random.Random) -> dict[str, Any]:
    return rnd.choice([{}, {}, {"tags": ["audit"]}, {"path_prefix": "sub/"}, {"scope": ["personal", "team"]}])


def memory_body(rnd: random.Random, world: World, asker: Asker) -> dict[str, Any]:
    more = rnd.choice([{}, {"supersedes": world.any_id(rnd, "doc_id", asker)}, {"session": "s"}])
    key = {"idempotency_key": f"k{rnd.randrange(5)}"} if rnd.random() < 0.3 else {}
    scope = rnd.choice(["personal", "shared", "team"])
    return {"content": f"Note {rnd.randrange(9)} of the Copper Guild.", "scope": scope, **more, **key}


def erasure_body(rnd: random.Random, world: World, asker: Asker) -> dict[str, Any]:
    """What isn't there: the world stays as it is, and nobody carries an erasure out."""
    return rnd.choice(
        [
            {"doc_ids": [rnd.choice([one for ids in world.ids.values() for one in ids.get("doc_id", [])])]}
            if "agent" not in asker.principal.roles
            else {"session": "no-such-session"},
            {"agent": "nobody"},
            {"subject": "Nobody at all"},
        ]
    )
