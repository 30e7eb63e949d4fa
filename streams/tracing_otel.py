"""Traces by OpenTelemetry, over OTLP/HTTP. Imported only where they are on (extra `tracing`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, SpanContext, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from indexers.version import VERSION
from streams.tracing import HEADER, Header, SpanKind

_PATH: Final = "/v1/traces"
#: Of one request to the collector, its repetitions included.
_EXPORT_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 3.0
#: The SDK keeps no more.
_LINKS_MAX: Final = 128
_KINDS: Final = {
    "consumer": trace.SpanKind.CONSUMER,
    "producer": trace.SpanKind.PRODUCER,
    "server": trace.SpanKind.SERVER,
}
_propagator: Final = TraceContextTextMapPropagator()


class OtelSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def trace_id(self) -> str | None:
        return trace.format_trace_id(self._span.get_span_context().trace_id)

    def tell(self, facts: Mapping[str, str | float], *, name: str | None = None) -> None:
        if name is not None:
            self._span.update_name(name)
        self._span.set_attributes({f"hopline.{key}": value for key, value in facts.items()})


class OtelTracing:
    """`processor` takes the spans that end. A part of a trace is kept where its beginning was."""

    def __init__(self, processor: SpanProcessor, *, ratio: float, service: str) -> None:
        resource = Resource.create({"service.name": service, "service.version": VERSION})
        sampler = ParentBased(TraceIdRatioBased(ratio))
        self._provider = TracerProvider(resource=resource, sampler=sampler, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("hopline", VERSION)

    @contextmanager
    def span(self, name: str, *, kind: SpanKind, before: Sequence[str] = ()) -> Iterator[OtelSpan]:
        led = [found for header in dict.fromkeys(before) if (found := _context_of(header)) is not None]
        parent, *others = led if len({one.trace_id for one in led}) == 1 else [None, *led]
        # None of what happens to run around it: a batch is fed by a task that lives as long as the process.
        around = otel_context.Context()
        if parent is not None:
            around = trace.set_span_in_context(trace.NonRecordingSpan(parent), around)
        span = self._tracer.start_span(
            name, around, _KINDS[kind], links=[Link(one) for one in others if one][:_LINKS_MAX]
        )
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            try:
                yield OtelSpan(span)
            except BaseException as exc:
                # Its kind alone: what it says may repeat a text.
                span.set_status(Status(StatusCode.ERROR, type(exc).__name__))
                raise
            finally:
                span.end()

    def headers(self) -> list[Header]:
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return [(HEADER, carrier[HEADER].encode())] if HEADER in carrier else []

    def close(self) -> None:
        closing = threading.Thread(target=self._provider.shutdown, name="close-tracing", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


def exporting(endpoint: str, *, ratio: float, service: str) -> OtelTracing:
    """`endpoint`: of the collector, `http://host:4318`; with a path, the whole address."""
    address = endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + _PATH
    exporter = OTLPSpanExporter(endpoint=address, timeout=_EXPORT_SECONDS)
    return OtelTracing(BatchSpanProcessor(exporter), ratio=ratio, service=service)


def _context_of(header: str) -> SpanContext | None:
    found = trace.get_current_span(_propagator.extract({HEADER: header}, otel_context.Context()))
    context = found.get_span_context()
    return context if context.is_valid else None
