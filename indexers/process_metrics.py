"""What every process of Hopline shows on /metrics, whatever it does."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from indexers.version import VERSION


def process_registry() -> CollectorRegistry:
    """A registry with what the interpreter and the system tell of a process. Made once, in `main()`."""
    # When each series began, as a series of its own: half as many again, which nothing here asks for.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


def tell_version(registry: CollectorRegistry) -> None:
    """Which build runs, as a label: of an upgrade it shows who has it by now."""
    info = Gauge("hopline_build_info", "Always 1; which version runs.", ("version",), registry=registry)
    info.labels(version=VERSION).set(1)
