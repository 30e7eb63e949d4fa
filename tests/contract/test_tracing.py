"""A trace goes from the write through two agents, over the topics, to where the memory can be found."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from streams.batch import BatchHandler, Record
from streams.context import AgentContext
from streams.pipeline import Pipeline
from streams.tracing_otel import OtelTracing
from tests.agents import Rig, agent_config, opened_rig
from tests.api import Service, bearer, principal, running_service
from tests.conftest import Stack

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ADA = principal("acme")
WORD = "heliotrope"


@dataclass(kw_only=True)
class Traced:
    rig: Rig
    service: Service
    exporter: InMemorySpanExporter

    async def write(self, trace_id: str) -> Record:
        """What ingest reads of a memory that a caller with this trace wrote."""
        headers = bearer(ADA) | {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
        body = {"content": f"The {WORD} is watered at noon.", "title": trace_id[:6]}
        answer = await self.service.http.post("/v1/memories", headers=headers, json=body)
        assert answer.status_code == 202, answer.text
        [record] = await self.rig.arrived(self.rig.config.topics.memory_writes)
        return record

    def spans(self) -> dict[str, ReadableSpan]:
        """Those that ended since the last call, by name."""
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        return {span.name: span for span in found}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def traced(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Traced]:
    folder = tmp_path_factory.mktemp("tracing")
    config = agent_config(stack, f"t{os.urandom(6).hex()}", [], memories=folder / "memories")
    exporter = InMemorySpanExporter()
    tracing = OtelTracing(SimpleSpanProcessor(exporter), ratio=1.0, service="test")
    async with contextlib.AsyncExitStack() as held:
        rig = await held.enter_async_context(opened_rig(config, tracing=tracing))
        service = await held.enter_async_context(
            running_service(
                stack.opensearch_url,
                folder,
                principals=[ADA],
                memories=folder / "memories",
                prefix=config.prefix,
                kafka_servers=stack.kafka_servers,
                keep=True,
                tracing=tracing,
            )
        )
        yield Traced(rig=rig, service=service, exporter=exporter)
        tracing.close()


async def through(handler: BatchHandler[Any], context: AgentContext, records: Sequence[Record]) -> None:
    async def acknowledge() -> None:
        return

    async with asyncio.TaskGroup() as tasks:
        pipeline = Pipeline(handler, context, tasks)
        await pipeline.feed(records, acknowledge)
        assert await pipeline.drain(30)


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


async def test_one_trace_from_the_callers_write_to_the_vectors(traced: Traced) -> None:
    rig, trace_id = traced.rig, "4bf92f3577b34da6a3ce929d0e0e4736"
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        record = await traced.write(trace_id)
        await through(rig.ingest, rig.ingest.context, [record])
        await through(rig.embed, rig.embed.context, await rig.announced())
    spans = traced.spans()
    assert list(spans) == ["POST /v1/memories", "ingest batch", "embed batch"]
    request, ingest, embed = spans.values()
    assert {trace_of(span) for span in spans.values()} == {trace_id}
    assert request.context is not None
    assert ingest.context is not None
    assert parent_of(request) == 0x00F067AA0BA902B7
    assert (parent_of(ingest), parent_of(embed)) == (request.context.span_id, ingest.context.span_id)
    told = dict(ingest.attributes or {})
    assert (told["hopline.records"], told["hopline.indexed"]) == (1, 1)
    assert dict(request.attributes or {})["hopline.tenant"] == "acme"
    assert WORD not in "".join(span.to_json() for span in spans.values())
    lines = [line for line in logged if line["event"] in ("request.answered", "batch.committed")]
    assert [line["trace_id"] for line in lines] == [trace_id] * 3


async def test_a_batch_of_several_traces_is_a_trace_that_links_to_each(traced: Traced) -> None:
    rig, ids = traced.rig, [digit * 32 for digit in "ab"]
    records = [await traced.write(trace_id) for trace_id in ids]
    traced.spans()
    await through(rig.ingest, rig.ingest.context, records)
    await through(rig.embed, rig.embed.context, await rig.announced())
    spans = traced.spans()
    ingest, embed = spans["ingest batch"], spans["embed batch"]
    assert parent_of(ingest) is None
    assert [f"{link.context.trace_id:032x}" for link in ingest.links] == ids
    assert trace_of(embed) == trace_of(ingest)
    assert trace_of(ingest) not in ids


async def test_a_request_that_says_nothing_begins_a_trace(traced: Traced) -> None:
    traced.spans()
    for said in ({}, {"traceparent": "no trace"}):
        answer = await traced.service.http.get("/v1/whoami", headers=bearer(ADA) | said)
        assert answer.status_code == 200
        [span] = traced.spans().values()
        assert (span.name, span.parent) == ("GET /v1/whoami", None)
    await traced.service.http.get("/healthz")
    assert traced.spans() == {}
