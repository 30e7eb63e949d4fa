"""The query service and the agents over one memory tree: what is written through the API is carried out here."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from indexers.domain.identity import AgentId, Namespace, Principal, Role, Scope
from indexers.opensearch.rows import REBUILT, Index
from indexers.settings import VaultRoot
from indexers.vault.tree import VaultTree
from search_api.mcp.settings import McpSettings
from search_api.settings import ApiSettings
from streams.batch import Record
from tests.agents import Rig, agent_config, opened_rig, vault_root
from tests.api import Service, bearer, principal, running_service
from tests.conftest import Stack

BODY_MAX_BYTES = 400_000
UNKNOWN = "00000000-0000-7000-8000-000000000000"


def with_roles(who: Principal, *roles: Role) -> Principal:
    return dataclasses.replace(who, agent_id=AgentId(f"{who.agent_id}-{roles[0]}"), roles=roles)


ADA = principal("acme", "ada", "ops")
BOB = principal("acme", "bob", "ops", "sales")
READER = with_roles(ADA, "reader")
ADMIN = with_roles(ADA, "admin", "agent")
EVE = principal("rival", "ada", "ops")


@dataclass(kw_only=True)
class MemoryService:
    service: Service
    rig: Rig
    folder: Path
    #: Records of the memory-writes topic, as they came.
    log: list[Record] = field(default_factory=list)

    @property
    def tree(self) -> VaultTree:
        return self.rig.config.vault_tree

    async def call(
        self, who: Principal, method: str, path: str, body: Any = None, **more: Any
    ) -> httpx2.Response:
        options = {} if body is None else {"json": body}
        headers = bearer(who) | more.pop("headers", {})
        return await self.service.http.request(method, path, headers=headers, params=more, **options)

    async def ok(self, who: Principal, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = await self.call(who, method, path, body, **more)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    async def write(self, who: Principal, content: str, **fields: Any) -> Any:
        """Accepted, not yet carried out."""
        return await self.ok(who, "POST", "/v1/memories", {"content": content, **fields})

    async def written(self, who: Principal, content: str, **fields: Any) -> Any:
        """Carried out by all agents."""
        answer = await self.write(who, content, **fields)
        await self.carry_out()
        return answer

    async def arrived(self) -> list[Record]:
        found = await self.rig.arrived(self.rig.config.topics.memory_writes)
        self.log += found
        return found

    async def ingest(self) -> None:
        """What stands on the log by now."""
        if records := await self.arrived():
            await self.rig.feed(*records)

    async def carry_out(self) -> None:
        await self.ingest()
        await self.follow_on()

    async def follow_on(self) -> None:
        """The agents behind ingest."""
        if records := await self.rig.announced():
            await self.rig.embed_records(records)
            await self.rig.extract_records(records)
            await self.rig.link_all()
        await self.rig.gate.refresh(Index.MENTIONS, Index.ENTITIES)

    async def state(self, who: Principal, event_id: str) -> str:
        state: str = (await self.ok(who, "GET", f"/v1/events/{event_id}"))["state"]
        return state

    async def stages(self, who: Principal, event_id: str) -> list[str]:
        return [one["stage"] for one in (await self.ok(who, "GET", f"/v1/events/{event_id}"))["stages"]]

    async def found(self, who: Principal, query: str, **more: Any) -> list[str]:
        """Ids of the hits."""
        return [hit["doc_id"] for hit in (await self.service.search(who, query, **more))["hits"]]

    def file(self, answer: Any, place: str = "acme/personal/ada") -> Path:
        return self.folder / place / str(answer["path"])

    def root(self, who: Principal = ADA) -> VaultRoot:
        """Of the agent's own memories."""
        found = self.tree.root_of(
            Namespace(tenant_id=who.tenant_id, agent_id=who.agent_id, scope=Scope.PERSONAL)
        )
        assert found is not None
        return found

    def edited(self, answer: Any, text: str, **more: Any) -> Record:
        """A person's edit of ADA's memory, and the watcher's word about it."""
        return self.rig.saved(answer["path"], text, root=self.root(), **more)

    async def rows_with(self, doc_id: str) -> dict[str, int]:
        """Index → living rows of this document."""
        counts: dict[str, int] = {}
        for index in REBUILT:
            for row in (await self.rig.rows(index)).values():
                mine = doc_id in (row.get("doc_id"), row.get("from_doc_id"), row.get("to_doc_id"))
                if mine and not row.get("deleted"):
                    counts[index.value] = counts.get(index.value, 0) + 1
        return counts


@contextlib.asynccontextmanager
async def memory_service(
    stack: Stack,
    folder: Path,
    *,
    principals: Sequence[Principal] = (ADA, BOB, READER, ADMIN, EVE),
    mcp: McpSettings | None = None,
) -> AsyncIterator[MemoryService]:
    """One root of the settings, which is of tenant `acme` and agent `owner`; everybody else's is the tree."""
    tree = folder / "memories"
    root = vault_root(folder, agent="owner")
    prefix = f"t{os.urandom(6).hex()}"
    config = agent_config(stack, prefix, [root], memories=tree)
    async with (
        opened_rig(config) as rig,
        running_service(
            stack.opensearch_url,
            folder,
            vaults=[root],
            principals=principals,
            api=ApiSettings(body_max_bytes=BODY_MAX_BYTES),
            prefix=prefix,
            kafka_servers=stack.kafka_servers,
            memories=tree,
            mcp=mcp,
            keep=True,
        ) as service,
    ):
        yield MemoryService(service=service, rig=rig, folder=tree)
