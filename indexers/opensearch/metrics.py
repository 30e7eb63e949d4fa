"""What the gate's writes come to, as metrics: the same in every process."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from indexers.opensearch.calls import BulkRejected, BulkRetried, BulkSent, StoreFact

OUTCOMES: Final = ("sent", "retried", "rejected")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class StoreMetrics:
    """`observe` is the gate's observer. Built once in a process, on the registry that /metrics shows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Counter(
            "hopline_store_rows_total",
            "Rows of answered bulk requests: sent, to be sent again for a passing fault (retried), refused for good.",
            ("outcome",),
            registry=registry,
        )
        self._bytes = Counter(
            "hopline_store_sent_bytes_total", "Size of the answered bulk requests.", registry=registry
        )
        self._seconds = Histogram(
            "hopline_store_bulk_seconds", "Time of one bulk request.", buckets=_SECONDS, registry=registry
        )
        for outcome in OUTCOMES:
            self._rows.labels(outcome=outcome)

    def observe(self, fact: StoreFact) -> None:
        match fact:
            case BulkSent():
                self._rows.labels(outcome="sent").inc(fact.rows)
                self._bytes.inc(fact.bytes)
                self._seconds.observe(fact.seconds)
            case BulkRetried():
                self._rows.labels(outcome="retried").inc(fact.rows)
            case BulkRejected():
                self._rows.labels(outcome="rejected").inc(fact.rows)
