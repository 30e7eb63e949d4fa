"""Where traces are off nothing of OpenTelemetry's SDK is loaded, and records bear no header."""

from __future__ import annotations

import subprocess
import sys

import pytest
from faust.types.tuples import ConsumerMessage

from indexers.errors import ConfigurationError
from streams.settings import TracingSettings
from streams.tracing import OFF, header_of, open_tracing


def test_no_process_loads_it() -> None:
    script = (
        "import sys, streams.worker, streams.agents.ingest, streams.watcher.service, search_api.serve\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("endpoint", [None, ""])
def test_without_an_endpoint_they_are_off(endpoint: str | None) -> None:
    tracing = open_tracing(TracingSettings(endpoint=endpoint), service="test")
    assert tracing is OFF
    with tracing.span("a batch", kind="consumer", before=["00-" + "a" * 32 + "-" + "b" * 16 + "-01"]) as span:
        span.tell({"records": 1}, name="another name")
        assert (span.trace_id, tracing.headers()) == (None, [])


def test_an_endpoint_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "streams.tracing_otel", None)
    with pytest.raises(ConfigurationError, match="extra `tracing`"):
        open_tracing(TracingSettings(endpoint="http://127.0.0.1:1"), service="test")


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        pytest.param([("other", b"x"), ("traceparent", b"00-1-2-01")], "00-1-2-01", id="there"),
        pytest.param([("traceparent", b"\xff")], "\u00ff", id="no text"),
        pytest.param({"traceparent": b"00-1-2-01"}, "00-1-2-01", id="a mapping"),
        pytest.param([], None, id="none"),
        pytest.param(None, None, id="no headers"),
    ],
)
def test_the_header_of_a_record(
    headers: list[tuple[str, bytes]] | dict[str, bytes] | None, found: str | None
) -> None:
    assert header_of(headers) == found
    # As Faust hands them on.
    message = ConsumerMessage(
        "t", 0, 0, timestamp=0.0, timestamp_type=0, headers=headers, key=b"", value=b"", checksum=b"", tp=None
    )
    assert header_of(message.headers) == found
