"""What Hopline sees of Kafka and OpenSearch; and what their own exporters say, where there are such."""

from __future__ import annotations

from tools.dashboards.panels import RATE, SELECT, Dashboard, Panel, Query, Row, gauges, quantiles, rates

_STORE = Row(
    title="OpenSearch, as Hopline sees it",
    panels=(
        Panel(
            title="Time of a bulk request",
            about="Median and p95, by component.",
            unit="s",
            queries=quantiles("hopline_store_bulk_seconds", "component", of=(0.5, 0.95)),
        ),
        Panel(
            title="Rows of bulk requests",
            about="Sent, to be sent again for a passing fault (retried), refused for good (rejected).",
            unit="ops",
            queries=(rates("hopline_store_rows_total", "component, outcome"),),
        ),
        Panel(
            title="Retried and rejected share",
            about="Over 20 % retried: too many requests, or a write block. Over 1 % rejected: the mapping or a row.",
            unit="percentunit",
            limits=(0.01, 0.2),
            queries=(
                Query(
                    expr="sum by (outcome) "
                    f'(rate(hopline_store_rows_total{{{SELECT}, outcome=~"retried|rejected"}}[{RATE}]))'
                    " / ignoring (outcome) group_left () "
                    f'sum(rate(hopline_store_rows_total{{{SELECT}, outcome="sent"}}[{RATE}]))',
                    legend="{{outcome}}",
                ),
            ),
        ),
        Panel(
            title="Bytes sent",
            about="In bulk requests that were answered.",
            unit="Bps",
            queries=(rates("hopline_store_sent_bytes_total", "component"),),
        ),
        Panel(
            title="Recall and look-up, p95",
            about="Steps of a search that wait for the store.",
            unit="s",
            queries=quantiles(
                "hopline_search_step_seconds", "step", where='step=~"recall|graph|look_up|filter"', of=(0.95,)
            ),
        ),
        Panel(
            title="Answers without the store",
            about="Problem answers: store-unavailable, too-slow.",
            unit="reqps",
            queries=(
                rates("hopline_http_problems_total", "kind", where='kind=~"store-unavailable|too-slow"'),
            ),
        ),
    ),
)
_BROKER = Row(
    title="Kafka, as Hopline sees it",
    panels=(
        Panel(
            title="Records waiting",
            about="By group and topic.",
            unit="short",
            queries=(gauges("hopline_stream_lag_records", "component, topic"),),
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
        Panel(
            title="Partitions held",
            about="By group.",
            unit="short",
            queries=(gauges("hopline_stream_assigned_partitions", "component"),),
        ),
    ),
)
_WAITS = Row(
    title="Waits for engines",
    panels=(
        Panel(
            title="Batches held",
            about="Workers whose batch waits for the broker or the store.",
            unit="short",
            queries=(
                gauges(
                    "hopline_stream_held", "component, dependency", where='dependency=~"kafka|opensearch"'
                ),
            ),
        ),
        Panel(
            title="Tries that failed",
            about="Of the agents.",
            unit="ops",
            queries=(
                rates(
                    "hopline_stream_retries_total",
                    "component, dependency",
                    where='dependency=~"kafka|opensearch"',
                ),
            ),
        ),
        Panel(
            title="Waits of the watcher",
            about="Each wait is one try.",
            unit="ops",
            queries=(rates("hopline_watcher_retries_total", "dependency"),),
        ),
    ),
)
_KAFKA_EXPORTER = Row(
    title="Optional: kafka-exporter (github.com/danielqsj/kafka_exporter); empty without it",
    optional=True,
    panels=(
        Panel(
            title="Lag by group",
            about="As the exporter sees it, also while no worker runs.",
            unit="short",
            queries=(
                Query(
                    expr='sum by (consumergroup, topic) (kafka_consumergroup_lag{consumergroup=~"hopline.*"})',
                    legend="{{consumergroup}} {{topic}}",
                ),
            ),
        ),
        Panel(
            title="Partitions short of replicas",
            about="Of Hopline's topics.",
            unit="short",
            limits=(1,),
            queries=(
                Query(
                    expr='sum by (topic) (kafka_topic_partition_under_replicated_partition{topic=~"hopline.*"})',
                    legend="{{topic}}",
                ),
            ),
        ),
        Panel(
            title="Brokers",
            about="Seen by the exporter.",
            unit="short",
            queries=(Query(expr="max(kafka_brokers)", legend="brokers"),),
        ),
    ),
)
_OPENSEARCH_EXPORTER = Row(
    title="Optional: OpenSearch's plugin prometheus-exporter; empty without it",
    optional=True,
    panels=(
        Panel(
            title="Cluster",
            about="0 green, 1 yellow, 2 red.",
            unit="short",
            limits=(1, 2),
            queries=(Query(expr="max by (cluster) (opensearch_cluster_status)", legend="{{cluster}}"),),
        ),
        Panel(
            title="Free disk",
            about="By node. Below the flood-stage watermark (5 %) indices are blocked for writes: runbook full-disk.",
            unit="percentunit",
            queries=(
                Query(
                    expr="min by (node) (opensearch_fs_total_available_bytes / opensearch_fs_total_total_bytes)",
                    legend="{{node}}",
                ),
            ),
        ),
        Panel(
            title="Heap",
            about="By node.",
            unit="percent",
            queries=(Query(expr="max by (node) (opensearch_jvm_mem_heap_used_percent)", legend="{{node}}"),),
        ),
    ),
)

ENGINES = Dashboard(
    name="engines",
    title="Hopline / Engines",
    about="Kafka and OpenSearch as Hopline sees them; rows of their own exporters are optional.",
    rows=(_STORE, _BROKER, _WAITS, _KAFKA_EXPORTER, _OPENSEARCH_EXPORTER),
)
