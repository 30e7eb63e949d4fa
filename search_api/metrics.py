"""All metrics of the query service. Label values are closed sets; tenants are in the logs."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from indexers.opensearch.metrics import StoreMetrics

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ApiMetrics:
    """One instance a process, made with its registry and passed down."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.store = StoreMetrics(registry)
        self.request_seconds = Histogram(
            "hopline_http_request_seconds",
            "Time from the request's head to the end of its answer.",
            ["route", "status"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.requests_in_flight = Gauge(
            "hopline_http_requests_in_flight", "Requests being answered now.", registry=registry
        )
        self.search_seconds = Histogram(
            "hopline_search_seconds",
            "Time of one search inside the service, by the parts it used.",
            ["mode"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.step_seconds = Histogram(
            "hopline_search_step_seconds",
            "Time of one waiting step of a search: filter, embed, recall, look_up, excerpts (what of them is "
            "left to wait for after look_up).",
            ["step"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.stage_candidates = Counter(
            "hopline_search_stage_candidates_total",
            "Candidates that a stage of the retrieval took in and gave on.",
            ["stage", "direction"],
            registry=registry,
        )
        self.stale_excerpts = Counter(
            "hopline_search_stale_excerpts_total",
            "Hits shown without an excerpt, by reason.",
            ["reason"],
            registry=registry,
        )
        self.query_cache = Counter(
            "hopline_search_query_cache_total",
            "Query vectors taken from the cache (hit) or computed (miss).",
            ["outcome"],
            registry=registry,
        )
        self.problems = Counter(
            "hopline_http_problems_total", "Problem answers by kind.", ["kind"], registry=registry
        )
