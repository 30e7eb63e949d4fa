"""All metrics of the query service. Label values are closed sets; tenants are in the logs."""

from __future__ import annotations

from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from indexers.model_metrics import ModelMetrics
from indexers.opensearch.metrics import StoreMetrics
from indexers.process_metrics import tell_version
from search_api.identity.refusals import Reason
from search_api.problems import Kind
from search_api.quotas import Kind as QuotaKind

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TOKENS = (100, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)


class ApiMetrics:
    """One instance a process, made with its registry and passed down."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        tell_version(registry)
        self.store = StoreMetrics(registry)
        self.model = ModelMetrics(registry)
        self._of_requests()
        self._of_identity()
        self._of_memories()
        self._of_erasures()
        self._of_searches()
        self._of_hits()
        self._of_contexts()
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """A series that begins with its first event has no increase: Prometheus wouldn't see that event."""
        for metric, label, values in (
            (self.problems, "kind", get_args(Kind)),
            (self.auth_failures, "reason", get_args(Reason)),
            (self.audit_entries, "outcome", ("written", "dropped")),
            (self.quota_refusals, "kind", get_args(QuotaKind)),
            (self.query_cache, "outcome", ("hit", "miss")),
            (self.related_hits, "kind", ("only", "more")),
            (self.context_documents, "level", ("L0", "L1")),
        ):
            for value in values:
                metric.labels(**{label: value})

    def _of_requests(self) -> None:
        """Of every route."""
        self.request_seconds = Histogram(
            "hopline_http_request_seconds",
            "Time from the request's head to the end of its answer.",
            ["route", "status"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.requests_in_flight = Gauge(
            "hopline_http_requests_in_flight", "Requests being answered now.", registry=self.registry
        )
        self.problems = Counter(
            "hopline_http_problems_total", "Problem answers by kind.", ["kind"], registry=self.registry
        )

    def _of_identity(self) -> None:
        """Who was refused, and why."""
        self.auth_failures = Counter(
            "hopline_auth_failures_total",
            "Requests whose asker isn't known, by reason: missing (no key), unknown, expired, revoked, token (signed, "
            "and not taken), token_expired, suspended (its tenant), busy (too many unknown keys), unavailable.",
            ["reason"],
            registry=self.registry,
        )
        self.audit_entries = Counter(
            "hopline_audit_entries_total",
            "Entries of the audit log: written to the store, or dropped (in the process's log alone).",
            ["outcome"],
            registry=self.registry,
        )
        self.quota_refusals = Counter(
            "hopline_quota_refusals_total",
            "Requests refused with 429, by the limit of the tenant that was reached (requests, writes, bytes).",
            ["kind"],
            registry=self.registry,
        )

    def _of_memories(self) -> None:
        """What was accepted into the log."""
        self.memory_events = Counter(
            "hopline_memory_events_total",
            "Memory events that the broker confirmed, by kind (write, update, supersede, forget, erase); replayed: the "
            "idempotency key was known.",
            ["kind", "outcome"],
            registry=self.registry,
        )
        self.memory_wait_seconds = Histogram(
            "hopline_memory_wait_seconds",
            "Time that callers waited for a milestone of their events, by how it ended: reached, ended (overtaken or "
            "failed), late (the time was over).",
            ["until", "outcome"],
            buckets=_SECONDS,
            registry=self.registry,
        )

    def _of_erasures(self) -> None:
        """Over all tenants, as this process last looked: each process shows the same."""
        self.erasures_pending = Gauge(
            "hopline_erasures_pending",
            "Erasures of all tenants that were accepted and have no receipt yet; each process shows all of them.",
            registry=self.registry,
        )
        self.erasure_oldest = Gauge(
            "hopline_erasure_oldest_pending_seconds",
            "Time since the oldest of them was asked for; 0: there is none.",
            registry=self.registry,
        )

    def _of_searches(self) -> None:
        """Time of searches, and what their stages did."""
        self.search_seconds = Histogram(
            "hopline_search_seconds",
            "Time of one search inside the service, by the parts it used.",
            ["mode"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.step_seconds = Histogram(
            "hopline_search_step_seconds",
            "Time of one waiting step of a search: filter, embed and recall (what is left to wait for of each: words "
            "are searched for beside the model), graph, look_up, excerpts (what is left after look_up).",
            ["step"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.stage_candidates = Counter(
            "hopline_search_stage_candidates_total",
            "Candidates that a stage of the retrieval took in and gave on.",
            ["stage", "direction"],
            registry=self.registry,
        )
        self._stages: dict[tuple[str, str], Counter] = {}
        self.query_cache = Counter(
            "hopline_search_query_cache_total",
            "Query vectors taken from the cache (hit) or computed (miss).",
            ["outcome"],
            registry=self.registry,
        )

    def _of_hits(self) -> None:
        """Of what is shown: which parts of the ranking decided it, and what is missing."""
        self.related_hits = Counter(
            "hopline_search_related_hits_total",
            "Hits shown that the graph alone brought (only), or direct hits that have more of their score from the "
            "graph (more).",
            ["kind"],
            registry=self.registry,
        )
        self.health_changes = Counter(
            "hopline_search_health_changes_total",
            "Documents that are among the first five since the health of others lowered those.",
            registry=self.registry,
        )
        self.source_ties = Counter(
            "hopline_search_source_ties_total",
            "Neighbours among the first five hits whose order their sources decided.",
            registry=self.registry,
        )
        self.graph_truncated = Counter(
            "hopline_search_graph_truncated_total",
            "Edges, names and documents that caps of the graph left out, by cap; of pages: how often one was full.",
            ["cap"],
            registry=self.registry,
        )
        self.stale_excerpts = Counter(
            "hopline_search_stale_excerpts_total",
            "Hits shown without an excerpt, by reason.",
            ["reason"],
            registry=self.registry,
        )

    def _of_contexts(self) -> None:
        """Of assembled contexts."""
        self.context_seconds = Histogram(
            "hopline_context_seconds",
            "Time of one context inside the service, its search included.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.context_tokens = Histogram(
            "hopline_context_tokens",
            "Tokens of the assembled contexts.",
            buckets=_TOKENS,
            registry=self.registry,
        )
        self.context_documents = Counter(
            "hopline_context_documents_total",
            "Documents in contexts: with excerpts (L1), or with their line alone (L0).",
            ["level"],
            registry=self.registry,
        )

    def count_stage(self, stage: str, taken: int, given: int) -> None:
        """Counters of a stage are looked up once: a search has twenty stages."""
        for direction, count in (("in", taken), ("out", given)):
            counter = self._stages.get((stage, direction))
            if counter is None:
                counter = self.stage_candidates.labels(stage=stage, direction=direction)
                self._stages[stage, direction] = counter
            counter.inc(count)
