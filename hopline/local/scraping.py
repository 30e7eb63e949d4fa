"""Where a Prometheus finds the processes of the local stack: a file of targets (file_sd), written at each start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from hopline.local.state import write_whole
from hopline.local.supervised import ProcessSpec

#: Process of the stack → label `component`, as alerts, dashboards and the chart have it. Engines have none of it.
COMPONENTS: Final[Mapping[str, str]] = {
    "ingest": "ingest",
    "embed": "embed",
    "extract": "extract",
    "link": "link",
    "api": "query",
    "watch": "watcher",
}


class TargetGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the file: addresses (host:port) that share labels."""

    targets: list[str]
    labels: dict[str, str]


def target_groups(specs: Sequence[ProcessSpec]) -> list[TargetGroup]:
    return [
        TargetGroup(targets=[spec.url.removeprefix("http://")], labels={"component": COMPONENTS[spec.name]})
        for spec in specs
        if spec.name in COMPONENTS
    ]


def write_targets(path: Path, groups: Sequence[TargetGroup]) -> None:
    """An empty list once all is stopped as asked: what is meant to be down isn't missed."""
    write_whole(path, list(groups))
