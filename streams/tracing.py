"""Traces, from a write to where it can be found: what the rest of the code knows of them.

OpenTelemetry is imported only where `tracing.endpoint` is set (streams.tracing_otel). A span holds ids and numbers,
never the text of a memory or a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Literal, Protocol

from indexers.errors import ConfigurationError
from streams.settings import TracingSettings

#: Of Kafka records and HTTP requests alike (W3C Trace Context).
HEADER: Final = "traceparent"

SpanKind = Literal["consumer", "producer", "server"]
Header = tuple[str, bytes]


class Span(Protocol):
    """One step. `trace_id`: 32 hex digits, for the log; None where traces are off."""

    @property
    def trace_id(self) -> str | None: ...

    def tell(self, facts: Mapping[str, str | float], *, name: str | None = None) -> None:
        """What is known by now: ids and numbers (`records` becomes `hopline.records`), and a better name."""
        ...


class Tracing(Protocol):
    """One of a process, passed down."""

    def span(self, name: str, *, kind: SpanKind, before: Sequence[str] = ()) -> AbstractContextManager[Span]:
        """What runs inside is the span, tasks begun there included. `before`: HEADER of what led to it.

        Where all of that is of one trace, the span continues it. Else it begins a trace that links to each. What can't
        be read as a HEADER led to nothing.
        """
        ...

    def headers(self) -> list[Header]:
        """What a record bears that is sent now."""
        ...

    def close(self) -> None:
        """Blocks for a few seconds at most: what isn't exported by then is lost."""
        ...


class _NoSpan:
    @property
    def trace_id(self) -> str | None:
        return None

    def tell(self, facts: Mapping[str, str | float], *, name: str | None = None) -> None:
        """Nobody listens."""


class NoTracing:
    """Traces are off."""

    @contextmanager
    def span(self, name: str, *, kind: SpanKind, before: Sequence[str] = ()) -> Iterator[Span]:
        _ = name, kind, before
        yield _NO_SPAN

    def headers(self) -> list[Header]:
        return []

    def close(self) -> None:
        return


_NO_SPAN: Final = _NoSpan()
OFF: Final[Tracing] = NoTracing()


def open_tracing(settings: TracingSettings, *, service: str) -> Tracing:
    """`service`: the process, `hopline-ingest`. Raises ConfigurationError where the extra is missing."""
    if not settings.endpoint:
        return OFF
    try:
        from streams.tracing_otel import exporting
    except ImportError as exc:
        raise ConfigurationError(
            f"HOPLINE_TRACING__ENDPOINT needs the extra `tracing` (pip install 'hopline[tracing]'): {exc}"
        ) from exc
    return exporting(settings.endpoint, ratio=settings.sample_ratio, service=service)


def header_of(
    headers: Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | None,
) -> str | None:
    """HEADER of a Kafka record, as text."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    for name, value in pairs:
        if name == HEADER and value is not None:
            return value.decode("latin-1")
    return None
