"""Metrics of the watcher. Built once in its `main()` on a registry of its own."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable
from functools import partial
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from indexers.opensearch.metrics import StoreMetrics
from indexers.ports import ProblemReason, VaultProblem
from indexers.process_metrics import tell_version

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class WatcherMetrics:
    """Roots are named in the settings, so their names are a closed set; tenants are no label."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        tell_version(registry)
        self.store = StoreMetrics(registry)
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.changes = counter(
            "hopline_watcher_changes_total", "Events that the broker confirmed.", ("kind", "origin")
        )
        self.files = gauge("hopline_watcher_files", "Notes known.", ("root",))
        self.held = gauge(
            "hopline_watcher_held_removals",
            "Removals waiting for `hopline rescan --confirm-removals`.",
            ("root",),
        )
        self.problems = gauge(
            "hopline_watcher_problems", "Names left out at the last scan.", ("root", "reason")
        )
        self.scan_seconds = Histogram(
            "hopline_watcher_scan_seconds", "Time of one scan.", buckets=_SECONDS, registry=registry
        )
        self.root_up = gauge(
            "hopline_watcher_root_up", "1 while the root can be read and is watched.", ("root",)
        )
        self.failures = counter(
            "hopline_watcher_failures_total", "Watches that broke and began anew.", ("root",)
        )
        self.undecodable = counter(
            "hopline_watcher_undecodable_names_total",
            "Live changes that named a file in no UTF-8; the root is scanned instead.",
            ("root",),
        )
        self.retries = counter("hopline_watcher_retries_total", "Waits for a service.", ("dependency",))
        self.progress = gauge(
            "hopline_watcher_progress_timestamp_seconds", "When a root's loop last came round.", ("root",)
        )
        self.bulk_waits = counter(
            "hopline_watcher_bulk_wait_seconds_total",
            "Seconds for which a bulk of changes waited for ingest.",
        )
        self.ingest_rate = gauge(
            "hopline_watcher_ingest_rate",
            "File changes a second that ingest commits, as the pace of a bulk has it.",
        )
        for kind in ("upserted", "deleted"):
            for origin in ("live", "scan"):
                self.changes.labels(kind=kind, origin=origin)
        for dependency in ("kafka", "opensearch"):
            self.retries.labels(dependency=dependency)

    def count_problems(self, root: str, problems: Iterable[VaultProblem]) -> None:
        counts = Counts(problem.reason for problem in problems)
        for reason in get_args(ProblemReason):
            self.problems.labels(root=root, reason=reason).set(counts[reason])
