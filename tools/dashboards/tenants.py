"""Who is let in and who is refused. No metric has a tenant label: the log lines name the tenant."""

from __future__ import annotations

from tools.dashboards.panels import SELECT, Dashboard, Panel, Query, Row, rates

_OWN = 'route!~"/healthz|/readyz|/metrics"'
_REFUSED = Row(
    title="Refused",
    panels=(
        Panel(
            title="Over a limit",
            about="Requests refused with 429, by the limit of the tenant that was reached. Which tenant: the log's "
            "request.answered lines with status 429.",
            unit="reqps",
            queries=(rates("hopline_quota_refusals_total", "kind"),),
        ),
        Panel(
            title="Not known",
            about="Requests whose asker isn't known, by reason. Many `revoked` or `unknown`: runbook leaked-key.",
            unit="reqps",
            queries=(rates("hopline_auth_failures_total", "reason"),),
        ),
        Panel(
            title="Problem answers",
            about="By kind.",
            unit="reqps",
            queries=(rates("hopline_http_problems_total", "kind"),),
        ),
    ),
)
_ANSWERED = Row(
    title="Answered",
    panels=(
        Panel(
            title="Requests by status",
            about="Probes and scrapes left out.",
            unit="reqps",
            stacked=True,
            width=12,
            queries=(rates("hopline_http_request_seconds_count", "status", where=_OWN),),
        ),
        Panel(
            title="Administration",
            about="Requests to the routes of keys, tenants and the audit log.",
            unit="reqps",
            width=12,
            queries=(
                rates("hopline_http_request_seconds_count", "route, status", where='route=~"/v1/admin/.*"'),
            ),
        ),
    ),
)
_WRITTEN = Row(
    title="Written and erased",
    panels=(
        Panel(
            title="Memory events",
            about="That the broker confirmed; `replayed`: the idempotency key was known.",
            unit="ops",
            queries=(rates("hopline_memory_events_total", "kind, outcome"),),
        ),
        Panel(
            title="Erasures",
            about="Pending, and the age of the oldest in seconds. Over 15 minutes: runbook erase-overdue.",
            unit="short",
            queries=(
                Query(expr=f"max(hopline_erasures_pending{{{SELECT}}})", legend="pending"),
                Query(expr=f"max(hopline_erasure_oldest_pending_seconds{{{SELECT}}})", legend="oldest, s"),
            ),
        ),
        Panel(
            title="Audit log",
            about="Entries written to the store, or dropped: those are in the process's log alone.",
            unit="ops",
            queries=(rates("hopline_audit_entries_total", "outcome"),),
        ),
    ),
)

TENANTS = Dashboard(
    name="tenants",
    title="Hopline / Tenants",
    about="Limits, refusals, writes and erasures of all tenants together; which tenant it was is in the logs.",
    rows=(_REFUSED, _ANSWERED, _WRITTEN),
)
