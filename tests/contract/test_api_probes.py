"""C13: random requests over every route, by everybody, about everything."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest
import pytest_asyncio

from search_api.app import openapi_document
from tests.conftest import Stack
from tests.probing import Asker, BodyOf, Prober, World
from tests.wall_world import WallWorld, context_body, erasure_body, memory_body, opened_world, search_body

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

#: Probes of one route: some in any case, since who is given it may be its owner; then until somebody is given it.
LEAST_TRIES: Final = 3
TRIES: Final = 400
#: Several askers at once: an answer that is mixed up with another's is a leak too.
#: Some wait for seconds (a write by MCP for its ingestion, which nobody does here).
AT_ONCE: Final = 16
LONG: Final = 100_000


def _reason(*_: object) -> dict[str, Any]:
    return {"reason": "probe"}


RECEIPT: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("erasure_id", "requested_by", "requested_at", "completed_at", "log_expires_at", "signature"), "x"
    ),
    "tenant_id": "t1",
    "doc_ids": [],
    "removed": {},
    "remaining": {},
}
BODIES: Final[dict[tuple[str, str], BodyOf]] = {
    ("POST", "/v1/search"): search_body,
    ("POST", "/v1/context"): context_body,
    ("POST", "/v1/entities/proposals/{proposal_id}/accept"): _reason,
    ("POST", "/v1/entities/proposals/{proposal_id}/reject"): _reason,
    ("POST", "/v1/entities/{entity_id}/block"): _reason,
    ("POST", "/v1/entities/{entity_id}/unblock"): _reason,
    ("POST", "/v1/entities/{entity_id}/merge"): lambda r, w, a: {"other_id": w.any_id(r, "entity_id", a)},
    ("POST", "/v1/entities/{entity_id}/unmerge"): lambda r, w, a: {"name_id": w.any_id(r, "alias_id", a)},
    ("POST", "/v1/entities/{entity_id}/rename"): lambda r, *_: {"name": f"Name {r.randrange(9)}"},
    ("POST", "/v1/memories"): memory_body,
    ("POST", "/v1/memories/batch"): lambda r, w, a: {"memories": [memory_body(r, w, a)]},
    ("PUT", "/v1/memories/{doc_id}"): lambda *_: {"content": "Nothing of note."},
    ("POST", "/v1/erasures"): erasure_body,
    ("POST", "/v1/erasures/check"): lambda *_: dict(RECEIPT),
    ("POST", "/v1/admin/keys"): lambda r, *_: {"agent": r.choice(["ada", "bob"]), "roles": ["reader"]},
    ("POST", "/v1/admin/tenants"): lambda r, *_: {"tenant": r.choice(["t1", "t2", "t9"])},
    ("PUT", "/v1/admin/tenants/{tenant}"): lambda *_: {"suspended": False},
    ("PUT", "/v1/namespaces/{namespace}/labels"): lambda *_: {"labels": [{"name": "crew"}]},
}


def _document(rnd: random.Random, world: World, asker: Asker) -> dict[str, Any]:
    return {"doc_id": world.any_id(rnd, "doc_id", asker)}


TOOLS: Final[dict[str, BodyOf]] = {
    "search": lambda r, w, a: {"query": search_body(r, w, a)["query"], "limit": r.choice([1, 20])},
    "context": lambda r, w, a: {"query": search_body(r, w, a)["query"]},
    "read_file": _document,
    "related": _document,
    "backlinks": _document,
    "forget": _document,
    "entity": lambda r, w, a: {"name": r.choice([w.any_id(r, "entity_id", a), "Copper Guild"])},
    "write_memory": lambda r, *_: {"content": f"Note {r.randrange(9)}."},
}
#: Without a key: metrics are of all tenants, without a word of any. And the end of a tenant: test_erasure.py.
IDLE: Final = frozenset(
    {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("POST", "/v1/admin/tenants/{tenant}/erase"),
    }
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WallWorld]:
    async with opened_world(stack, tmp_path_factory.mktemp("probes")) as opened:
        yield opened


def prober(world: WallWorld) -> Prober:
    return Prober(
        world=world.world,
        http=world.service.http,
        openapi=openapi_document(),
        bodies=BODIES,
        idle=IDLE,
        tools=TOOLS,
    )


async def run(world: WallWorld, probes: int, *, seed: int) -> Prober:
    own = prober(world)

    async def some(part: int) -> None:
        rnd = random.Random(seed + part)  # noqa: S311 - reproducible probes
        for _ in range(probes // AT_ONCE):
            await own.check(own.probe(rnd))

    async with asyncio.TaskGroup() as group:
        for part in range(AT_ONCE):
            group.create_task(some(part))
    return own


async def test_c13_random_probes_over_every_route_leak_nothing(world: WallWorld) -> None:
    own = prober(world)

    async def some(routes: Sequence[tuple[str, str]], rnd: random.Random) -> None:
        for route in routes:
            for tried in range(TRIES):
                if tried >= LEAST_TRIES and route in own.answered:
                    break
                await own.check(own.probe(rnd, route))

    async with asyncio.TaskGroup() as group:
        for part in range(AT_ONCE):
            group.create_task(some(own.routes[part::AT_ONCE], random.Random(random.randrange(10**6))))  # noqa: S311 - pytest-randomly seeds it
    # Probes that are all refused would show nothing.
    assert [route for route in own.routes if route not in own.answered] == []


@pytest.mark.soak
async def test_c13_a_hundred_thousand_probes_leak_nothing(world: WallWorld) -> None:
    own = await run(world, LONG, seed=6)
    assert [route for route in own.routes if route not in own.answered] == []
