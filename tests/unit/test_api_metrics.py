"""Series of closed label sets are there before their first event: an alert on their increase sees that event."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from search_api.metrics import ApiMetrics


@pytest.mark.parametrize(
    "series",
    [
        'hopline_auth_failures_total{reason="unknown"} 0.0',
        'hopline_auth_failures_total{reason="revoked"} 0.0',
        'hopline_quota_refusals_total{kind="writes"} 0.0',
        'hopline_http_problems_total{kind="unauthorized"} 0.0',
        'hopline_audit_entries_total{outcome="dropped"} 0.0',
    ],
)
def test_a_counter_begins_at_zero(series: str) -> None:
    registry = CollectorRegistry()
    ApiMetrics(registry)
    assert series in generate_latest(registry).decode().splitlines()
