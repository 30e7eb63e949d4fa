"""The query service over names that the link agent wrote, and its commands carried out by that agent."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from indexers.domain.entities.names import name_key
from indexers.domain.identity import EntityNamespace, Namespace, Principal
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import Index
from indexers.settings import VaultRoot
from search_api.settings import ApiSettings
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.api import Service, bearer, principal, running_service
from tests.conftest import Stack
from tests.linking import LinkRig

BODY_MAX_BYTES = 8_192
ADA = principal("acme")
#: A curator, and of the team that has a namespace of its own.
CORA = dataclasses.replace(principal("acme", "cora", "ops"), roles=("agent", "curator"))
UNKNOWN = "00000000-0000-5000-8000-000000000000"


@dataclass(kw_only=True)
class EntityService:
    """`link` feeds names as extract tells them; `rig` has all agents, for real texts."""

    service: Service
    rig: Rig
    link: LinkRig
    #: Labels whose documents were told already.
    said: set[str] = field(default_factory=set)

    async def say(self, label: str, **texts: Sequence[str]) -> None:
        """Documents and the names that each says, unless they were told before: each test has a label of its own."""
        if label not in self.said:
            self.said.add(label)
            records = [await self.link.said(f"{path}.md", {label: names}) for path, names in texts.items()]
            await self.link.feed(*records)

    def line(self, label: str, name: str, documents: int, **more: Any) -> dict[str, Any]:
        """An entity of the shared namespace as lists show it."""
        return {
            "entity_id": self.id_of(label, name),
            "name": name,
            "label": label,
            "namespace": "shared",
            "mention_count": documents,
            "blocked": False,
        } | more

    async def get(self, who: Principal, path: str, status: int = 200, **params: Any) -> Any:
        answer = await self.service.http.get(path, params=params, headers=bearer(who))
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, who: Principal, path: str, body: Any) -> httpx2.Response:
        return await self.service.http.post(path, json=body, headers=bearer(who))

    async def put(self, who: Principal, path: str, body: Any) -> httpx2.Response:
        return await self.service.http.put(path, json=body, headers=bearer(who))

    async def command(self, who: Principal, path: str, **body: Any) -> str:
        """Accepted and carried out; its event id."""
        answer = await self.post(who, f"/v1/entities/{path}", body)
        assert answer.status_code == 202, answer.text
        event_id: str = answer.json()["event_id"]
        await self.carry_out()
        return event_id

    async def carry_out(self) -> None:
        """What stands on the log by now, through the link agent."""
        await self.rig.link_records(await self.rig.arrived(self.rig.config.topics.mentions))

    async def pages(self, who: Principal, path: str, key: str, **params: Any) -> list[list[Any]]:
        """Every page of a list, read to its end."""
        found: list[list[Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            answer = await self.get(who, path, **params, **cursor)
            found.append(answer[key])
            if answer["next_cursor"] is None:
                return found
            cursor = {"cursor": answer["next_cursor"]}

    def id_of(self, label: str, name: str, home: Namespace | None = None) -> str:
        return EntityNamespace.of(home or self.link.home).name_id(label, name_key(name, label))

    async def write_rows(self, index: Index, rows: dict[str, Any]) -> None:
        """As an agent would have written them, and findable."""
        writes = [
            RowWrite(
                principal=Principal.pipeline(row.tenant_id),
                index=index,
                row_id=row_id,
                action="index",
                row=row,
                version=1,
            )
            for row_id, row in rows.items()
        ]
        assert {result.status for result in await self.rig.gate.write(writes)} == {"applied"}
        await self.rig.gate.refresh(index)


@contextlib.asynccontextmanager
async def entity_service(
    stack: Stack, folder: Path, roots: Sequence[VaultRoot], principals: Sequence[Principal]
) -> AsyncIterator[EntityService]:
    """Indices and topics of a prefix of its own, removed afterwards."""
    config = agent_config(stack, f"t{os.urandom(6).hex()}", roots)
    async with (
        opened_rig(config) as rig,
        running_service(
            stack.opensearch_url,
            folder,
            principals=principals,
            api=ApiSettings(body_max_bytes=BODY_MAX_BYTES),
            prefix=config.prefix,
            kafka_servers=stack.kafka_servers,
        ) as service,
    ):
        link = LinkRig(config=config, gate=rig.gate, link=rig.link)
        yield EntityService(service=service, rig=rig, link=link)


@contextlib.asynccontextmanager
async def shared_and_team(stack: Stack, folder: Path) -> AsyncIterator[EntityService]:
    """Ada's vault is shared, Cora's is of her team."""
    roots = [vault_root(folder, "main"), vault_root(folder, "ops", agent="cora", scope="team", team="ops")]
    async with entity_service(stack, folder, roots, [ADA, CORA]) as opened:
        yield opened
