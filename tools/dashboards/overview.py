"""Is it all right, and what is going on: one page for whoever is on call."""

from __future__ import annotations

from tools.dashboards.panels import SELECT, Dashboard, Panel, Query, Row, gauges, rates

_NOW = 4
_STATE = Row(
    title="Is it all right?",
    panels=(
        Panel(
            title="Alerts firing",
            about="Alerts of Hopline (critical and warning). Their runbooks are in docs/runbooks.",
            unit="short",
            kind="stat",
            width=_NOW,
            height=5,
            limits=(1, 3),
            queries=(
                Query(
                    expr='count(ALERTS{alertname=~"Hopline.*", alertstate="firing", severity!="info", '
                    + SELECT
                    + "}) or vector(0)"
                ),
            ),
        ),
        Panel(
            title="Processes",
            about="Processes that answer, by component. A component that is missing here is absent.",
            unit="short",
            kind="stat",
            width=8,
            height=5,
            queries=(gauges("hopline_build_info", "component", how="count"),),
        ),
        Panel(
            title="Versions",
            about="Processes by version: two of them while a rollout goes on.",
            unit="short",
            kind="stat",
            width=_NOW,
            height=5,
            queries=(gauges("hopline_build_info", "version", how="count"),),
        ),
        Panel(
            title="Found late",
            about="Share of events of the last 5 minutes that missed their objective: by word 2 s, by vector 5 s, by "
            "entity 30 s. 1 % may.",
            unit="percentunit",
            kind="stat",
            width=_NOW,
            height=5,
            limits=(0.01, 0.06),
            queries=(
                Query(
                    expr=f"sum by (until) (hopline:freshness_slow:rate5m{{{SELECT}}})"
                    f" / sum by (until) (hopline:freshness_events:rate5m{{{SELECT}}})",
                    legend="{{until}}",
                ),
            ),
        ),
        Panel(
            title="Searches late, requests failed",
            about="Share of searches and contexts of the last 5 minutes over 0.5 s (1 % may), and of requests that "
            "ended with 5xx (0.1 % may).",
            unit="percentunit",
            kind="stat",
            width=_NOW,
            height=5,
            limits=(0.01, 0.06),
            queries=(
                Query(
                    expr=f"sum(hopline:searches_slow:rate5m{{{SELECT}}}) / sum(hopline:searches:rate5m{{{SELECT}}})",
                    legend="late",
                ),
                Query(
                    expr=f"sum(hopline:requests_failed:rate5m{{{SELECT}}}) / sum(hopline:requests:rate5m{{{SELECT}}})",
                    legend="failed",
                ),
            ),
        ),
    ),
)
_WORK = Row(
    title="Work",
    panels=(
        Panel(
            title="Records confirmed",
            about="Records of each agent that are stored, skipped or parked.",
            unit="ops",
            queries=(rates("hopline_stream_records_total", "component"),),
        ),
        Panel(
            title="Records waiting",
            about="End offset minus committed offset of each group.",
            unit="short",
            queries=(gauges("hopline_stream_lag_records", "component"),),
        ),
        Panel(
            title="Age of the oldest waiting record",
            about="How far each group is behind in time; 0 where nothing waits.",
            unit="s",
            queries=(gauges("hopline_stream_lag_seconds", "component", how="max"),),
        ),
        Panel(
            title="Changes seen in vaults",
            about="Events of the watcher that the broker confirmed: live, or found by a scan.",
            unit="ops",
            queries=(rates("hopline_watcher_changes_total", "kind, origin"),),
        ),
        Panel(
            title="Memories accepted",
            about="Memory events of the query service that the broker confirmed.",
            unit="ops",
            queries=(rates("hopline_memory_events_total", "kind"),),
        ),
        Panel(
            title="Requests",
            about="Answered requests by route, probes and scrapes left out.",
            unit="reqps",
            queries=(
                rates(
                    "hopline_http_request_seconds_count", "route", where='route!~"/healthz|/readyz|/metrics"'
                ),
            ),
        ),
    ),
)
_TROUBLE = Row(
    title="What needs somebody",
    panels=(
        Panel(
            title="Dead letters, 6 h",
            about="Records parked, by class. Each is a change that isn't found until it is replayed; it lapses after "
            "30 days.",
            unit="short",
            queries=(
                Query(
                    expr="sum by (component, error_class) "
                    f"(increase(hopline_stream_dead_letters_total{{{SELECT}}}[6h])) > 0 "
                    f"or sum by (component) (increase(hopline_stream_dead_letters_total{{{SELECT}}}[6h]))",
                    legend="{{component}} {{error_class}}",
                ),
            ),
        ),
        Panel(
            title="Batches held",
            about="Workers whose batch waits, by what it waits for.",
            unit="short",
            limits=(1,),
            queries=(gauges("hopline_stream_held", "component, dependency"),),
        ),
        Panel(
            title="Roots down",
            about="Vault roots that can't be read now.",
            unit="short",
            limits=(1,),
            queries=(
                Query(
                    expr="count by (component) "
                    f"(hopline_watcher_root_up{{{SELECT}}}) - sum by (component) (hopline_watcher_root_up{{{SELECT}}})",
                    legend="{{component}}",
                ),
            ),
        ),
        Panel(
            title="Removals held",
            about="Documents whose files vanished in one go: `hopline rescan --confirm-removals` lets them go.",
            unit="short",
            limits=(1,),
            queries=(gauges("hopline_watcher_held_removals", "root", how="max"),),
        ),
        Panel(
            title="Erasures pending",
            about="Accepted erasures whose agents haven't finished, and the age of the oldest (seconds).",
            unit="short",
            queries=(
                Query(expr=f"max(hopline_erasures_pending{{{SELECT}}})", legend="pending"),
                Query(expr=f"max(hopline_erasure_oldest_pending_seconds{{{SELECT}}})", legend="oldest, s"),
            ),
        ),
        Panel(
            title="Differences between vault and index",
            about="Of the last run of `hopline verify --every`. Without a verifier there is nothing here.",
            unit="short",
            limits=(1,),
            queries=(gauges("hopline_verify_findings", "root, kind", how="max"),),
        ),
        Panel(
            title="Time since the last comparison",
            about="Since the end of the last complete run of `hopline verify --every`.",
            unit="s",
            queries=(
                Query(
                    expr=f"time() - max by (component) (hopline_verify_last_run_timestamp_seconds{{{SELECT}}})",
                    legend="{{component}}",
                ),
            ),
        ),
        Panel(
            title="Comparisons that could not be ended, 6 h",
            about="The store or a vault was away.",
            unit="short",
            queries=(
                Query(
                    expr=f"sum by (component) (increase(hopline_verify_failed_runs_total{{{SELECT}}}[6h]))",
                    legend="{{component}}",
                ),
            ),
        ),
        Panel(
            title="Time of a comparison",
            about="Of one complete run, its second look included: mean of 6 h.",
            unit="s",
            queries=(
                Query(
                    expr=f"sum by (component) (increase(hopline_verify_run_seconds_sum{{{SELECT}}}[6h]))"
                    f" / sum by (component) (increase(hopline_verify_run_seconds_count{{{SELECT}}}[6h]))",
                    legend="{{component}}",
                ),
            ),
        ),
    ),
)

OVERVIEW = Dashboard(
    name="overview",
    title="Hopline / Overview",
    about="Is it all right, what is going on, and what needs somebody.",
    rows=(_STATE, _WORK, _TROUBLE),
)
