"""Metrics of the verifier. Built once in its `main()` on a registry of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from indexers.process_metrics import tell_version
from indexers.verify.report import Kind

_SECONDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)


class VerifyMetrics:
    """Roots are named in the settings; those of the memory tree, whose names hold tenants, are shown as one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        tell_version(registry)
        self._findings = Gauge(
            "hopline_verify_findings",
            "Differences of vault and index at the last complete run, seen twice some time apart.",
            ("root", "kind"),
            registry=registry,
        )
        self._last_run = Gauge(
            "hopline_verify_last_run_timestamp_seconds",
            "When the last complete run ended; 0: none has yet.",
            registry=registry,
        )
        self._failed_runs = Counter(
            "hopline_verify_failed_runs_total",
            "Runs that could not be ended: the store or a vault was away.",
            registry=registry,
        )
        self._seconds = Histogram(
            "hopline_verify_run_seconds",
            "Time of one complete run, its second look included.",
            buckets=_SECONDS,
            registry=registry,
        )

    def complete(self, findings: Mapping[str, Mapping[str, int]], seconds: float) -> None:
        """`findings`: of every root, by kind. A root that is gone is shown no more."""
        self._findings.clear()
        for root, counts in findings.items():
            for kind in get_args(Kind):
                self._findings.labels(root=root, kind=kind).set(counts.get(kind, 0))
        self._seconds.observe(seconds)
        self._last_run.set_to_current_time()

    def failed(self) -> None:
        """What was found before still stands as far as anybody knows."""
        self._failed_runs.inc()
