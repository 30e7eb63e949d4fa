"""Rows of the pipeline's dashboard: what single workers do."""

from __future__ import annotations

from tools.dashboards.panels import RATE, SELECT, Panel, Query, Row, gauges, quantiles, rates

MODELS = Row(
    title="Models",
    panels=(
        Panel(
            title="Time of a model call",
            about="Median and p95, of agents and query service.",
            unit="s",
            queries=quantiles("hopline_model_seconds", "component, model", of=(0.5, 0.95)),
        ),
        Panel(
            title="Texts and windows",
            about="Given to the model a second.",
            unit="ops",
            queries=(rates("hopline_model_texts_total", "component, model"),),
        ),
        Panel(
            title="Windows of a call",
            about="Of the extractor.",
            unit="short",
            queries=quantiles("hopline_stream_model_windows", "component", of=(0.5, 0.95)),
        ),
        Panel(
            title="Vectors",
            about="Computed by the model, or reused from rows with the same text.",
            unit="ops",
            queries=(rates("hopline_stream_embeddings_total", "outcome"),),
        ),
        Panel(
            title="Mentions",
            about="By where they come from: the model, or a pattern.",
            unit="ops",
            queries=(rates("hopline_stream_mentions_total", "source"),),
        ),
        Panel(
            title="Mentions left out",
            about="By reason: no evidence in the text, or no room.",
            unit="ops",
            queries=(rates("hopline_stream_mentions_rejected_total", "reason"),),
        ),
        Panel(
            title="Words not shown to the extractor",
            about="Each alone is more than the model takes.",
            unit="ops",
            queries=(rates("hopline_stream_skipped_words_total", "component"),),
        ),
        Panel(
            title="Stated relations",
            about="Of indexed documents: the quote stands in the text, or is missing.",
            unit="ops",
            queries=(rates("hopline_stream_relations_total", "outcome"),),
        ),
        Panel(
            title="GPU memory (workers with CUDA only)",
            about="Held by the process's torch. Without CUDA there is no such series.",
            unit="bytes",
            queries=(gauges("hopline_model_gpu_memory_bytes", "component, instance", how="max"),),
        ),
    ),
)
LINK = Row(
    title="Link: names and entities",
    panels=(
        Panel(
            title="Edges document → name",
            about="Rows written and removed.",
            unit="ops",
            queries=(rates("hopline_link_edges_total", "outcome"),),
        ),
        Panel(
            title="Names",
            about="Created, joined to another by likeness, removed.",
            unit="ops",
            queries=(rates("hopline_link_names_total", "outcome"),),
        ),
        Panel(
            title="Time of a batch by part, p95",
            about="edges, names, curation.",
            unit="s",
            queries=quantiles("hopline_link_stage_seconds", "stage", of=(0.95,)),
        ),
        Panel(
            title="Proposals to curators",
            about="Merges that a person should decide.",
            unit="ops",
            width=12,
            queries=(rates("hopline_link_proposals_total", "component"),),
        ),
        Panel(
            title="Commands of curators",
            about="Applied, by kind.",
            unit="ops",
            width=12,
            queries=(rates("hopline_link_commands_total", "kind"),),
        ),
    ),
)
WATCHER = Row(
    title="Watcher",
    panels=(
        Panel(
            title="Changes",
            about="Events that the broker confirmed.",
            unit="ops",
            queries=(rates("hopline_watcher_changes_total", "kind, origin"),),
        ),
        Panel(
            title="Notes known",
            about="By root.",
            unit="short",
            queries=(gauges("hopline_watcher_files", "root", how="max"),),
        ),
        Panel(
            title="Time of a scan",
            about="Median and p95.",
            unit="s",
            queries=quantiles("hopline_watcher_scan_seconds", of=(0.5, 0.95)),
        ),
        Panel(
            title="Roots up",
            about="1 while a root can be read and is watched.",
            unit="short",
            queries=(gauges("hopline_watcher_root_up", "root", how="max"),),
        ),
        Panel(
            title="Time since a root was looked at",
            about="Over 10 minutes the watcher hangs.",
            unit="s",
            limits=(600,),
            queries=(
                Query(
                    expr=f"time() - max by (root) (hopline_watcher_progress_timestamp_seconds{{{SELECT}}})",
                    legend="{{root}}",
                ),
            ),
        ),
        Panel(
            title="Files left out",
            about="At the last scan, by reason: unreadable, too large, a name that is no UTF-8 and the like.",
            unit="short",
            queries=(gauges("hopline_watcher_problems", "root, reason", how="max"),),
        ),
        Panel(
            title="Watches that broke, names in no UTF-8",
            about="Both are followed by a scan.",
            unit="ops",
            queries=(
                rates("hopline_watcher_failures_total", "root", legend="{{root}} broke"),
                rates("hopline_watcher_undecodable_names_total", "root", legend="{{root}} name"),
            ),
        ),
        Panel(
            title="Waits for a service",
            about="The broker or the store.",
            unit="ops",
            queries=(rates("hopline_watcher_retries_total", "dependency"),),
        ),
        Panel(
            title="Pace of a bulk",
            about="What ingest commits a second, as the pace has it, and the share of time that a bulk waits for it.",
            unit="short",
            queries=(
                Query(expr=f"max(hopline_watcher_ingest_rate{{{SELECT}}})", legend="ingest, 1/s"),
                Query(
                    expr=f"sum(rate(hopline_watcher_bulk_wait_seconds_total{{{SELECT}}}[{RATE}]))",
                    legend="waiting, share",
                ),
            ),
        ),
        Panel(
            title="Removals held",
            about="Until `hopline rescan --confirm-removals`.",
            unit="short",
            limits=(1,),
            queries=(gauges("hopline_watcher_held_removals", "root", how="max"),),
        ),
    ),
)
