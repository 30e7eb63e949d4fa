"""How fast and how well searches are answered."""

from __future__ import annotations

from tools.dashboards.panels import RATE, SELECT, Dashboard, Panel, Query, Row, gauges, quantiles, rates

_SEARCHES = 'route=~"/v1/search|/v1/context"'
_OWN = 'route!~"/healthz|/readyz|/metrics"'


def _share(part: str, whole: str, legend: str) -> Query:
    return Query(expr=f"{part} / {whole}", legend=legend)


_REQUESTS = Row(
    title="Requests",
    panels=(
        Panel(
            title="Requests by route",
            about="Answered, probes and scrapes left out.",
            unit="reqps",
            queries=(rates("hopline_http_request_seconds_count", "route", where=_OWN),),
        ),
        Panel(
            title="Time of searches and contexts",
            about="From the request's head to the end of its answer; the objective is 0.5 s for 99 %.",
            unit="s",
            queries=quantiles("hopline_http_request_seconds", where=_SEARCHES),
        ),
        Panel(
            title="Late and failed share of the last hour",
            about="Searches over 0.5 s (1 % is the budget), requests with 5xx (0.1 %).",
            unit="percentunit",
            limits=(0.01, 0.144),
            queries=(
                _share(
                    f"sum(sum_over_time(hopline:searches_slow:rate5m{{{SELECT}}}[1h]))",
                    f"sum(sum_over_time(hopline:searches:rate5m{{{SELECT}}}[1h]))",
                    "late",
                ),
                _share(
                    f"sum(sum_over_time(hopline:requests_failed:rate5m{{{SELECT}}}[1h]))",
                    f"sum(sum_over_time(hopline:requests:rate5m{{{SELECT}}}[1h]))",
                    "failed",
                ),
            ),
        ),
        Panel(
            title="Time by route, p95",
            about="All routes.",
            unit="s",
            width=12,
            queries=quantiles("hopline_http_request_seconds", "route", where=_OWN, of=(0.95,)),
        ),
        Panel(
            title="In flight",
            about="Requests being answered now, by process.",
            unit="short",
            width=12,
            queries=(gauges("hopline_http_requests_in_flight", "instance"),),
        ),
    ),
)
_TIME = Row(
    title="Where the time goes",
    panels=(
        Panel(
            title="Time inside the service by parts",
            about="p95, by the parts that the search used.",
            unit="s",
            queries=quantiles("hopline_search_seconds", "mode", of=(0.95,)),
        ),
        Panel(
            title="Time by step, p95",
            about="What is left to wait for: filter, embed, recall, graph, look_up, excerpts.",
            unit="s",
            queries=quantiles("hopline_search_step_seconds", "step", of=(0.95,)),
        ),
        Panel(
            title="Time of the query's embedding",
            about="One call of the model.",
            unit="s",
            queries=quantiles("hopline_model_seconds", "model", where='model="embedder"', of=(0.5, 0.95)),
        ),
        Panel(
            title="Query vectors from the cache",
            about="Share of searches that needed no model.",
            unit="percentunit",
            queries=(
                _share(
                    f'sum(rate(hopline_search_query_cache_total{{{SELECT}, outcome="hit"}}[{RATE}]))',
                    f"sum(rate(hopline_search_query_cache_total{{{SELECT}}}[{RATE}]))",
                    "hits",
                ),
            ),
        ),
        Panel(
            title="Time of a context",
            about="Its search included.",
            unit="s",
            queries=quantiles("hopline_context_seconds", of=(0.5, 0.95)),
        ),
        Panel(
            title="Waits for milestones of writes, p95",
            about="Callers that wait until their memory is searchable, by how it ended.",
            unit="s",
            queries=quantiles("hopline_memory_wait_seconds", "until, outcome", of=(0.95,)),
        ),
    ),
)
_QUALITY = Row(
    title="What is found",
    panels=(
        Panel(
            title="Candidates by stage",
            about="Given on by each stage of the retrieval, a second.",
            unit="ops",
            queries=(rates("hopline_search_stage_candidates_total", "stage", where='direction="out"'),),
        ),
        Panel(
            title="Hits that the graph brought",
            about="The graph alone (only), or more of the score from it than from words and vectors (more).",
            unit="ops",
            queries=(rates("hopline_search_related_hits_total", "kind"),),
        ),
        Panel(
            title="Left out by caps of the graph",
            about="Edges, names and documents; of pages: how often one was full.",
            unit="ops",
            queries=(rates("hopline_search_graph_truncated_total", "cap"),),
        ),
        Panel(
            title="Order decided by health and source",
            about="Documents among the first five since the health of others lowered those; neighbours whose order "
            "their sources decided.",
            unit="ops",
            queries=(
                rates("hopline_search_health_changes_total", "component", legend="health"),
                rates("hopline_search_source_ties_total", "component", legend="source"),
            ),
        ),
        Panel(
            title="Hits without an excerpt",
            about="The file changed since it was indexed, or can't be read: by reason.",
            unit="ops",
            queries=(rates("hopline_search_stale_excerpts_total", "reason"),),
        ),
        Panel(
            title="Tokens of a context",
            about="Median and p95.",
            unit="short",
            queries=quantiles("hopline_context_tokens", of=(0.5, 0.95)),
        ),
        Panel(
            title="Documents in contexts",
            about="With excerpts (L1), or with their line alone (L0).",
            unit="ops",
            queries=(rates("hopline_context_documents_total", "level"),),
        ),
    ),
)

SEARCH = Dashboard(
    name="search",
    title="Hopline / Search",
    about="Speed, and what the stages of the retrieval did.",
    rows=(_REQUESTS, _TIME, _QUALITY),
)
