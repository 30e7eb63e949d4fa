"""The routes of keys and tenants over the real store: who asks in their tests, and how."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from indexers.domain.identity import INSTALLATION
from indexers.opensearch.rows import Index
from search_api.settings import ApiSettings
from tests.api import Service, bearer, principal, running_service
from tests.conftest import Stack
from tests.issuer import ed_key, key_set, settings

CACHE_SECONDS = 0.2
OPERATOR = dataclasses.replace(principal(INSTALLATION, "operator"), roles=("admin",))
BOSS = dataclasses.replace(principal("acme", "boss"), roles=("admin",))
OTHER_BOSS = dataclasses.replace(principal("zeta", "boss"), roles=("admin",))
ADA = principal("acme", "ada")
NOBODY = "0123456789abcdef"
ED = ed_key()


@contextlib.asynccontextmanager
async def identity_service(stack: Stack, folder: Path) -> AsyncIterator[Service]:
    """Indices of a prefix of its own, removed afterwards. Takes tokens that `ED` signed."""
    (folder / "jwks.json").write_bytes(key_set(ED))
    async with running_service(
        stack.opensearch_url,
        folder,
        principals=[OPERATOR, BOSS, OTHER_BOSS, ADA],
        api=ApiSettings(key_cache_seconds=CACHE_SECONDS),
        oidc=settings(jwks_file=folder / "jwks.json"),
    ) as opened:
        yield opened


async def ask(
    service: Service, who: Any, method: str, path: str, status: int = 200, **options: Any
) -> dict[str, Any]:
    """`who`: a principal of the key file, or a key."""
    headers = {"authorization": f"Bearer {who}"} if isinstance(who, str) else bearer(who)
    answer = await service.http.request(method, path, headers=headers | options.pop("headers", {}), **options)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def make(service: Service, who: Any = BOSS, **body: Any) -> dict[str, Any]:
    return await ask(service, who, "POST", "/v1/admin/keys", 201, json={"agent": "nia", **body})


async def refused(service: Service, who: Any, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """Status and the answer without its request id."""
    headers = {"authorization": f"Bearer {who}"} if isinstance(who, str) else bearer(who)
    answer = await service.http.request(method, path, headers=headers, **options)
    body = answer.json()
    body.pop("request_id", None)
    return answer.status_code, body


async def audited(
    service: Service, who: Any, *, of: str = "", entries: int = 1, **params: Any
) -> list[dict[str, Any]]:
    """The log's entries that name `of`, once there are so many: they are written beside the requests."""
    async with asyncio.timeout(20):
        while True:
            await service.gate.refresh(Index.CONTROL)
            page = await ask(service, who, "GET", "/v1/admin/audit", params={"page_size": 200, **params})
            found = [entry for entry in page["entries"] if of in str(entry)]
            if len(found) >= entries:
                return found
            await asyncio.sleep(0.02)
