"""C13: random requests over every route, by everybody, about everything."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from search_api.app import openapi_document
from tests.conftest import Stack
from tests.probing import BodyOf, Prober
from tests.wall_world import WallWorld, context_body, erasure_body, memory_body, opened_world, search_body

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

SHORT: Final = 1_000
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
    ("POST", "/v1/entities/{entity_id}/unmerge"): lambda r, w, a: {"name_id": w.any_id(r, "entity_id", a)},
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
#: Without a key; and metrics are of all tenants, without a word of any.
OPEN: Final = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics")})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WallWorld]:
    async with opened_world(stack, tmp_path_factory.mktemp("probes")) as opened:
        yield opened


def prober(world: WallWorld) -> Prober:
    return Prober(
        world=world.world, http=world.service.http, openapi=openapi_document(), bodies=BODIES, idle=OPEN
    )


async def run(world: WallWorld, probes: int, *, seed: int, methods: set[str]) -> None:
    own = prober(world)
    rnd = random.Random(seed)  # noqa: S311 - reproducible probes
    for _ in range(probes):
        await own.check(own.probe(rnd))
    # Probes that are all refused would show nothing.
    answered = {route for route, statuses in own.statuses.items() if statuses & {200, 202}}
    assert [route for route in own.routes if route not in answered and route[0] in methods] == []


async def test_c13_random_probes_over_every_route_leak_nothing(world: WallWorld) -> None:
    seed = random.randrange(10**6)  # noqa: S311 - pytest-randomly seeds it
    await run(world, SHORT, seed=seed, methods={"GET"})


@pytest.mark.soak
async def test_c13_a_hundred_thousand_probes_leak_nothing(world: WallWorld) -> None:
    await run(world, LONG, seed=6, methods={"GET", "POST", "PUT", "DELETE"})
