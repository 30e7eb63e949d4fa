"""What every process shows on /metrics is as Prometheus wants it: names, types, units, help."""

from __future__ import annotations

import subprocess

import pytest
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector, generate_latest

from tools import reference
from tools.chart_tools import tool


@pytest.mark.parametrize("process", ["Agents", "Watcher", "Verifier", "Query service"])
def test_the_output_passes_promtools_check(process: str) -> None:
    registry = reference.registries()[process]
    documented = {name for name, *_ in reference.metric_rows(registry) if "gpu" not in name}
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    for metric in list(registry._collector_to_names):
        names = getattr(metric, "_labelnames", ())
        if names:
            metric.labels(*("x" for _ in names))  # type: ignore[attr-defined]
    output = generate_latest(registry)
    assert sorted(name for name in documented if f"# HELP {name} ".encode() not in output) == []
    checked = subprocess.run(
        [tool("promtool"), "check", "metrics"], input=output, capture_output=True, check=False, timeout=60
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_these_are_all_processes() -> None:
    assert list(reference.registries()) == ["Agents", "Watcher", "Verifier", "Query service"]
