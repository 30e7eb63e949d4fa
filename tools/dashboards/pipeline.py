"""From the log into the index, stage by stage."""

from __future__ import annotations

from tools.dashboards.panels import SELECT, Dashboard, Panel, Query, Row, gauges, quantiles, rates
from tools.dashboards.workers import LINK, MODELS, WATCHER

_FRESHNESS = Row(
    title="Freshness: from a write or a change to found",
    panels=(
        Panel(
            title="Time until found",
            about="From the event's time to rows that are confirmed and refreshed: by word (ingest), by vector "
            "(embed), by entity (link).",
            unit="s",
            width=12,
            queries=quantiles("hopline_stream_freshness_seconds", "until"),
        ),
        Panel(
            title="Late share",
            about="Missed objectives (2 s, 5 s, 30 s) of the last hour; 1 % is the budget, 14.4 % pages.",
            unit="percentunit",
            limits=(0.01, 0.144),
            width=6,
            queries=(
                Query(
                    expr="sum by (until) (sum_over_time(hopline:freshness_slow:rate5m{" + SELECT + "}[1h]))"
                    " / sum by (until) (sum_over_time(hopline:freshness_events:rate5m{" + SELECT + "}[1h]))",
                    legend="{{until}}",
                ),
            ),
        ),
        Panel(
            title="Events",
            about="Events whose time was taken.",
            unit="ops",
            width=6,
            queries=(rates("hopline_stream_freshness_seconds_count", "until"),),
        ),
    ),
)
_LOG = Row(
    title="Log",
    panels=(
        Panel(
            title="Records waiting",
            about="End offset minus committed offset, by topic.",
            unit="short",
            queries=(gauges("hopline_stream_lag_records", "component, topic"),),
        ),
        Panel(
            title="Age of the oldest waiting record",
            about="0 where nothing waits. Ingest: over a minute is late; others: over half an hour.",
            unit="s",
            queries=(gauges("hopline_stream_lag_seconds", "component, topic", how="max"),),
        ),
        Panel(
            title="Time without a commit while records wait",
            about="The worker that has waited longest. Over 5 minutes it is stuck, unless something is away.",
            unit="s",
            limits=(300,),
            queries=(gauges("hopline_stream_commit_age_seconds", "component", how="max"),),
        ),
        Panel(
            title="Time since the last commit",
            about="Of the group, whether or not records wait: an idle group's grows.",
            unit="s",
            queries=(
                Query(
                    expr="time() - max by (component) "
                    f"(hopline_stream_commit_progress_timestamp_seconds{{{SELECT}}} > 0)",
                    legend="{{component}}",
                ),
            ),
        ),
        Panel(
            title="Age of the newest confirmed record",
            about="By topic. A quiet topic's grows.",
            unit="s",
            queries=(
                Query(
                    expr="time() - max by (component, topic) "
                    f"(hopline_stream_newest_event_timestamp_seconds{{{SELECT}}})",
                    legend="{{component}} {{topic}}",
                ),
            ),
        ),
        Panel(
            title="Partitions held",
            about="By group; the number of a topic's partitions times its topics, but for a rebalance.",
            unit="short",
            queries=(gauges("hopline_stream_assigned_partitions", "component"),),
        ),
        Panel(
            title="Rebalances",
            about="Times that partitions were assigned anew, a quarter of an hour.",
            unit="short",
            queries=(
                Query(
                    expr=f"sum by (component) (increase(hopline_stream_rebalances_total{{{SELECT}}}[15m]))",
                    legend="{{component}}",
                ),
            ),
        ),
    ),
)
_BATCHES = Row(
    title="Batches",
    panels=(
        Panel(
            title="Records confirmed, by topic",
            about="Stored, skipped or parked.",
            unit="ops",
            queries=(rates("hopline_stream_records_total", "component, topic"),),
        ),
        Panel(
            title="Records of a batch",
            about="Median and p95.",
            unit="short",
            queries=quantiles("hopline_stream_batch_records", "component", of=(0.5, 0.95)),
        ),
        Panel(
            title="Time of a batch by stage, p95",
            about="prepare (the model's part: model), commit.",
            unit="s",
            queries=quantiles("hopline_stream_stage_seconds", "component, stage", of=(0.95,)),
        ),
        Panel(
            title="Skipped",
            about="Events that changed nothing: the same bytes, or older than what is stored.",
            unit="ops",
            queries=(rates("hopline_stream_skipped_total", "component, reason"),),
        ),
        Panel(
            title="Batches held",
            about="Workers whose batch waits, by what it waits for.",
            unit="short",
            queries=(gauges("hopline_stream_held", "component, dependency"),),
        ),
        Panel(
            title="Tries that failed",
            about="Each is repeated: nothing is lost.",
            unit="ops",
            queries=(rates("hopline_stream_retries_total", "component, dependency"),),
        ),
    ),
)
_LETTERS = Row(
    title="Dead letters",
    panels=(
        Panel(
            title="Records parked",
            about="By class (docs/how-to/dead-letters.md).",
            unit="ops",
            width=12,
            queries=(rates("hopline_stream_dead_letters_total", "component, error_class"),),
        ),
        Panel(
            title="Run of dead letters",
            about="Letters since the last good record; from `poison_run` (1,000) on the worker pauses.",
            unit="short",
            width=12,
            limits=(100, 1_000),
            queries=(gauges("hopline_stream_poison_run_records", "component", how="max"),),
        ),
    ),
)
PIPELINE = Dashboard(
    name="pipeline",
    title="Hopline / Pipeline",
    about="From the log into the index: freshness, lag, batches, dead letters, models, links, watcher.",
    rows=(_FRESHNESS, _LOG, _BATCHES, _LETTERS, MODELS, LINK, WATCHER),
)
