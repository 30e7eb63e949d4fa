"""The query service over real engines, a real model and real files: notes are indexed as the agents would."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import msgspec
import uvicorn
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from indexers import planning
from indexers.domain import links
from indexers.domain.chunking import embedding_text
from indexers.domain.hashing import content_hash
from indexers.domain.identity import AgentId, DocumentId, Principal, TeamId, TenantId, chunk_id
from indexers.embedders.factory import load_embedder
from indexers.opensearch.gate import Gate, RowRef, RowWrite
from indexers.opensearch.rows import ChunkRow, DocumentRow, Index, LinkRow, facts_of, owner_fields
from indexers.ports import Embedder
from indexers.settings import (
    EmbedderSettings,
    ExtractorSettings,
    IndexingSettings,
    OpenSearchSettings,
    VaultRoot,
)
from indexers.vault.local import LocalVaultFiles
from search_api.auth import KeyRing
from search_api.context.settings import ContextSettings
from search_api.identity.settings import OidcSettings
from search_api.keys import store_key
from search_api.mcp.settings import McpSettings
from search_api.metrics import ApiMetrics
from search_api.served import served
from search_api.services import Services
from search_api.settings import ApiSettings, LimitsSettings, SearchSettings
from search_api.wiring import ServeSettings, opened
from streams.settings import KafkaSettings
from streams.tracing import OFF, Tracing

T = TypeVar("T")
#: Nothing listens there: for what needs no broker.
NO_BROKER = "127.0.0.1:9"
INDEXED_AT = "2026-11-30T00:00:00Z"


@functools.cache
def embedder() -> Embedder:
    """The shipped model, loaded once for all tests."""
    return load_embedder(EmbedderSettings())


def key_of(principal: Principal) -> str:
    """Each principal's key in these tests."""
    return "test-key-" + "-".join((principal.tenant_id, principal.agent_id, *principal.teams))


def principal(tenant: str, agent: str = "ada", *teams: str) -> Principal:
    return Principal(
        tenant_id=TenantId(tenant), agent_id=AgentId(agent), teams=tuple(TeamId(t) for t in teams)
    )


def vault(folder: Path, notes: Mapping[str, str], **owner: Any) -> VaultRoot:
    """A root with these files; `owner` as in the settings."""
    for path, text in notes.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return VaultRoot(name=folder.name, path=folder, **{"tenant": "acme", "agent": "ada", **owner})


@dataclass(kw_only=True)
class Service:
    """The application in this process, and the gate to put rows under it."""

    gate: Gate
    http: httpx2.AsyncClient
    metrics: ApiMetrics
    app: ASGIApp
    services: Services
    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    async def post(self, who: Principal, body: Any) -> httpx2.Response:
        return await self.http.post("/v1/search", json=body, headers=bearer(who))

    async def get(self, who: Principal, path: str, **headers: str) -> httpx2.Response:
        return await self.http.get(path, headers={**bearer(who), **headers})

    async def search(self, who: Principal, query: str, **more: Any) -> dict[str, Any]:
        response = await self.post(who, {"query": query, **more})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def paths(self, who: Principal, query: str, **more: Any) -> list[str]:
        return [hit["path"] for hit in (await self.search(who, query, **more))["hits"]]

    async def index(self, *roots: VaultRoot, version: int = 1) -> None:
        """Rows of every file, as ingest and embed write them; links resolve among the files of one root."""
        for root in roots:
            for write in _writes(root, version, self.ids):
                [result] = await self.gate.write([write])
                assert result.status == "applied", result
        await self.gate.refresh()


def bearer(who: Principal) -> dict[str, str]:
    return {"authorization": f"Bearer {key_of(who)}"}


@contextlib.asynccontextmanager
async def running_service(
    opensearch_url: str,
    folder: Path,
    *,
    vaults: Sequence[VaultRoot] = (),
    principals: Sequence[Principal] = (),
    api: ApiSettings | None = None,
    search: SearchSettings | None = None,
    context: ContextSettings | None = None,
    mcp: McpSettings | None = None,
    limits: LimitsSettings | None = None,
    oidc: OidcSettings | None = None,
    prefix: str | None = None,
    kafka_servers: str = NO_BROKER,
    memories: Path | None = None,
    keep: bool = False,
    tracing: Tracing = OFF,
) -> AsyncIterator[Service]:
    """Indices of a prefix of its own, dropped afterwards unless they are another's (`keep`)."""
    keys_file = folder / "keys.json"
    for who in principals:
        store_key(keys_file, key_of(who), who)
    settings = ServeSettings(
        prefix=prefix or f"t{os.urandom(6).hex()}",
        opensearch_url=opensearch_url,
        opensearch=OpenSearchSettings(),
        kafka_servers=kafka_servers,
        kafka=KafkaSettings(partitions=2),
        embedder=EmbedderSettings(),
        extractor=ExtractorSettings(),
        indexing=IndexingSettings(),
        vaults=tuple(vaults),
        api=api or ApiSettings(),
        search=search or SearchSettings(),
        context=context or ContextSettings(),
        mcp=mcp or McpSettings(enabled=False),
        limits=limits or LimitsSettings(),
        oidc=oidc or OidcSettings(),
        keys_file=keys_file,
        memories=memories,
    )
    metrics = ApiMetrics(CollectorRegistry())
    async with opened(settings, embedder=embedder(), metrics=metrics, tracing=tracing) as (services, gate):
        model = embedder()
        await gate.ensure_indices(
            dimension=model.dimension, pair_id=model.pair_id, cosine_floor=model.cosine_floor
        )
        try:
            async with (
                in_one_task(
                    served(services, keys=KeyRing(keys_file), api=settings.api, mcp=settings.mcp)
                ) as app,
                httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://hopline") as http,
            ):
                service = Service(gate=gate, http=http, metrics=metrics, app=app, services=services)
                await service.index(*vaults)
                yield service
        finally:
            if not keep:
                await gate.drop_indices()


@contextlib.asynccontextmanager
async def in_one_task(opening: contextlib.AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """A fixture is set up in one task and torn down in another, which task groups don't stand."""
    values: list[T] = []
    opened, over = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        try:
            async with opening as value:
                values.append(value)
                opened.set()
                await over.wait()
        finally:
            opened.set()

    holding = asyncio.create_task(hold())
    await opened.wait()
    try:
        if values:
            yield values[0]
    finally:
        over.set()
        await holding


@contextlib.asynccontextmanager
async def over_uvicorn(app: ASGIApp) -> AsyncIterator[str]:
    """Address of the application behind a real server, as `hopline api` has it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


async def rewrite_documents(
    service: Service, who: Principal, root: str, changes: Mapping[str, Mapping[str, Any]]
) -> None:
    """Newer document rows, as ingest writes them before embed has followed."""
    for path, change in changes.items():
        doc_id = service.ids[(root, path)]
        [stored] = await service.gate.get_many(Index.DOCUMENTS, [RowRef(principal=who, row_id=doc_id)])
        assert stored is not None
        row = msgspec.convert({**stored.source, **change, "body": "marigold again"}, DocumentRow)
        await service.gate.write(
            [
                RowWrite(
                    principal=who,
                    index=Index.DOCUMENTS,
                    row_id=doc_id,
                    action="index",
                    row=row,
                    version=row.version,
                )
            ]
        )
    await service.gate.refresh()


def _writes(root: VaultRoot, version: int, ids: dict[tuple[str, str], str]) -> list[RowWrite]:
    plans = [_plan(root, entry.path, version) for entry in LocalVaultFiles(root.path).entries()]
    candidates = [_candidate(plan) for plan in plans]
    writes: list[RowWrite] = []
    for plan in plans:
        ids[(root.name, plan.row.path)] = plan.row.doc_id
        owner = root.namespace.principal
        writes.append(_write(owner, Index.DOCUMENTS, plan.row.doc_id, plan.row, version))
        writes += [
            _write(owner, Index.CHUNKS, chunk_id(DocumentId(plan.row.doc_id), row.ordinal), row, version)
            for row in _chunk_rows(root, plan, version)
        ]
        writes += [
            _write(owner, Index.LINKS, row_id, _resolved(row, candidates), version)
            for row_id, row in plan.links.items()
        ]
    return writes


def _plan(root: VaultRoot, path: str, version: int) -> planning.PlannedDocument:
    raw = (root.path / path).read_bytes()
    model, settings = embedder(), IndexingSettings()
    seen = planning.Seen(
        document=root.namespace.document(path),
        vault_path=path,
        version=version,
        event_id="0192f0c1-7a2b-7c3d-8e4f-5a6b7c8d9e0f",
        modified_at=INDEXED_AT,
    )
    return planning.plan_document(
        seen,
        planning.FileContent(head=raw, size=len(raw), content_hash=content_hash(raw)),
        counter=model,
        settings=settings,
        versions=planning.IndexVersions.of(model, model.model_id, settings),
        indexed_at=INDEXED_AT,
    )


def _chunk_rows(root: VaultRoot, plan: planning.PlannedDocument, version: int) -> list[ChunkRow]:
    texts = [embedding_text(c.heading_path, plan.text[c.start : c.end]) for c in plan.chunks]
    vectors = embedder().embed_passages(texts)
    return [
        ChunkRow(
            **owner_fields(root.namespace),
            doc_id=plan.row.doc_id,
            ordinal=chunk.ordinal,
            start=chunk.start,
            end=chunk.end,
            heading_path=list(chunk.heading_path),
            chunk_hash=chunk.chunk_hash,
            model_id=embedder().model_id,
            chunker_version="test",
            version=version,
            **msgspec.structs.asdict(facts_of(plan.row)),
            vector=vector.tolist(),
        )
        for chunk, vector in zip(plan.chunks, vectors, strict=True)
    ]


def _candidate(plan: planning.PlannedDocument) -> links.Candidate:
    row = plan.row
    return links.Candidate(
        doc_id=row.doc_id,
        path=row.path,
        path_key=row.path_key,
        name_key=row.name_key,
        alias_keys=tuple(row.alias_keys),
    )


def _resolved(row: LinkRow, candidates: Sequence[links.Candidate]) -> LinkRow:
    link_type: Any = row.link_type
    found = links.resolve(row.target_key, from_path=row.from_path, link_type=link_type, candidates=candidates)
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    changes = {
        "to_doc_id": found.to_doc_id,
        "resolved": found.to_doc_id is not None,
        "ambiguous": found.ambiguous,
    }
    return LinkRow(**(fields | changes))


def _write(who: Principal, index: Index, row_id: str, row: Any, version: int) -> RowWrite:
    return RowWrite(principal=who, index=index, row_id=row_id, action="index", row=row, version=version)
