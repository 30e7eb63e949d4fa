"""Every metric of the streaming side. Labels are closed sets written in code; tenants never become a label.

One `StreamMetrics` is built in each process' `main()` on a registry of its own and passed down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from indexers.domain.entities.curation import KINDS
from indexers.domain.entities.evidence import REASONS
from indexers.opensearch.metrics import StoreMetrics

#: What a batch may wait for.
Dependency = Literal["kafka", "opensearch", "vault", "model", "batch", "poison_run"]
DEPENDENCIES: Final[tuple[Dependency, ...]] = get_args(Dependency)

#: `model` is the part of `prepare` that the model takes (embed, extract).
Stage = Literal["prepare", "commit", "model"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

#: Parts of link's `commit`.
LinkStage = Literal["edges", "names", "curation"]
LINK_STAGES: Final[tuple[LinkStage, ...]] = get_args(LinkStage)

#: Reasons of dead letters. A class outside this set is counted as `other`, so that no input can widen the label.
ERROR_CLASSES: Final = frozenset(
    {
        "null_value",
        "not_json",
        "invalid_fields",
        "unknown_schema",
        "rejected_by_store",
        "file_too_large",
        "unreadable_reference",
        "hash_mismatch",
        "unknown_vault",
        "vault_unavailable",
        "parse_failed",
        "not_embeddable",
        "not_extractable",
        "invalid_labels",
        "event_too_large",
        "quote_missing",
        "no_such_document",
        "other",
    }
)

#: Where a mention comes from.
MENTION_SOURCES: Final = ("model", "pattern")
#: Why a mention is not stored; what isn't named here is counted as `other`.
REJECTIONS: Final = frozenset({*REASONS, "pattern_timed_out", "too_many", "event_too_large", "other"})

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_RECORDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
_WINDOWS = (1, 2, 4, 8, 16, 32, 64)


class StreamMetrics:
    """Counters, gauges and histograms of one agent process; `registry` is what /metrics shows."""

    def __init__(self, registry: CollectorRegistry, *, agent: str) -> None:
        self.registry = registry
        self.agent = agent
        self.store = StoreMetrics(registry)
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.records = counter(
            "hopline_stream_records_total", "Records confirmed: stored, skipped or parked.", ("topic",)
        )
        self.skipped = counter("hopline_stream_skipped_total", "Events that changed nothing.", ("reason",))
        self.batch_records = histogram(
            "hopline_stream_batch_records", "Records of one batch.", buckets=_RECORDS
        )
        self.stage_seconds = histogram(
            "hopline_stream_stage_seconds", "Time of one batch in one stage.", ("stage",), buckets=_SECONDS
        )
        self.retries = counter(
            "hopline_stream_retries_total", "Tries that a dependency made fail for a while.", ("dependency",)
        )
        self.held = gauge("hopline_stream_held", "1 while a batch waits for the dependency.", ("dependency",))
        self.dead_letters = counter("hopline_stream_dead_letters_total", "Records parked.", ("error_class",))
        self.poison_run = gauge(
            "hopline_stream_poison_run_records", "Dead letters since the last good record."
        )
        self.embeddings = counter(
            "hopline_stream_embeddings_total",
            "Chunk vectors: computed by the model, or reused.",
            ("outcome",),
        )
        self.relations = counter(
            "hopline_stream_relations_total",
            "Stated relations of indexed documents: their quote stands in the text, or is missing.",
            ("outcome",),
        )
        self.mentions = counter("hopline_stream_mentions_total", "Mentions that events told of.", ("source",))
        self.mentions_rejected = counter(
            "hopline_stream_mentions_rejected_total",
            "Mentions left out: no evidence, or no room.",
            ("reason",),
        )
        self.skipped_words = counter(
            "hopline_stream_skipped_words_total",
            "Words that the extractor was not shown: each alone is more than the model takes.",
        )
        self.model_windows = histogram(
            "hopline_stream_model_windows", "Windows of one call of the extractor.", buckets=_WINDOWS
        )
        self.rebalances = counter(
            "hopline_stream_rebalances_total", "Times that partitions were assigned anew to this worker."
        )
        self._of_link(counter, histogram)
        self._of_the_topics(gauge)
        self._fill_closed_sets()

    def _of_link(self, counter: Callable[..., Counter], histogram: Callable[..., Histogram]) -> None:
        self.link_edges = counter("hopline_link_edges_total", "Rows document → name.", ("outcome",))
        self.link_names = counter(
            "hopline_link_names_total", "Names that came, joined another by likeness, or went.", ("outcome",)
        )
        self.link_proposals = counter("hopline_link_proposals_total", "Merges proposed to curators.")
        self.link_commands = counter(
            "hopline_link_commands_total", "Commands of curators applied.", ("kind",)
        )
        self.link_seconds = histogram(
            "hopline_link_stage_seconds", "Time of one part of a batch.", ("stage",), buckets=_SECONDS
        )

    def _of_the_topics(self, gauge: Callable[..., Gauge]) -> None:
        """Where the group stands, as the brokers see it."""
        self.lag = gauge(
            "hopline_stream_lag_records",
            "End offset minus committed offset of the held partitions.",
            ("topic",),
        )
        self.assigned = gauge("hopline_stream_assigned_partitions", "Partitions held by this worker.")
        self.progress = gauge(
            "hopline_stream_commit_progress_timestamp_seconds", "When a committed offset last moved."
        )
        self.newest_event = gauge(
            "hopline_stream_newest_event_timestamp_seconds",
            "Time of the newest record confirmed.",
            ("topic",),
        )

    def _fill_closed_sets(self) -> None:
        """A counter that was never raised reads 0, not absent: alerts on rates need the first step too."""
        closed: tuple[tuple[Counter | Gauge | Histogram, str, Iterable[str]], ...] = (
            (self.retries, "dependency", DEPENDENCIES),
            (self.held, "dependency", DEPENDENCIES),
            (self.stage_seconds, "stage", STAGES),
            (self.dead_letters, "error_class", sorted(ERROR_CLASSES)),
            (self.skipped, "reason", ("same", "older")),
            (self.embeddings, "outcome", ("computed", "reused")),
            (self.relations, "outcome", ("stands", "quote_missing")),
            (self.mentions, "source", MENTION_SOURCES),
            (self.mentions_rejected, "reason", sorted(REJECTIONS)),
            (self.link_edges, "outcome", ("written", "removed")),
            (self.link_names, "outcome", ("created", "joined", "removed")),
            (self.link_commands, "kind", KINDS),
            (self.link_seconds, "stage", LINK_STAGES),
        )
        for metric, label, values in closed:
            for value in values:
                metric.labels(**{label: value})

    def rejected_mentions(self, reason: str, number: int) -> None:
        self.mentions_rejected.labels(reason=reason if reason in REJECTIONS else "other").inc(number)

    def parked(self, error_class: str) -> None:
        known = error_class if error_class in ERROR_CLASSES else "other"
        self.dead_letters.labels(error_class=known).inc()
