"""What helm, kubeconform and helm-unittest say about the chart, for each set-up that it supports."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rendered import CHART, SET_UPS, of_kind, template, values_file
from tools.chart_readme import page
from tools.chart_tools import tool

SCHEMAS = Path(__file__).parent / "schemas"
#: Both ends of what the chart supports (`kubeVersion`).
KUBERNETES = ("1.29", "1.37")


def said(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("set_up", SET_UPS)
def test_helm_lint_has_nothing_to_say(set_up: str) -> None:
    done = said(tool("helm"), "lint", "--strict", CHART, "--values", values_file(set_up))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout
    assert "[ERROR]" not in done.stdout


def test_the_charts_own_unit_tests_pass() -> None:
    done = said(tool("helm-unittest"), "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"Tests: +(\d+) passed, (\d+) total", done.stdout)
    assert counts is not None
    assert int(counts[1]) == int(counts[2]) > 0


@pytest.mark.parametrize("version", KUBERNETES)
def test_every_object_fits_the_schemas_of_kubernetes_and_of_the_custom_resources(
    version: str, tmp_path: Path
) -> None:
    files = []
    for set_up in SET_UPS:
        done = template(set_up, kubernetes=f"{version}.0")
        assert done.returncode == 0, done.stderr
        files.append(tmp_path / f"{set_up}.yaml")
        files[-1].write_text(done.stdout, encoding="utf-8")
    verdict = conform(version, *files)
    assert verdict["summary"] | {"valid": 0} == {"valid": 0, "invalid": 0, "errors": 0, "skipped": 0}, verdict
    assert verdict["summary"]["valid"] == sum(
        file.read_text(encoding="utf-8").count("\nkind: ") for file in files
    )


def test_kubeconform_finds_what_is_wrong(tmp_path: Path) -> None:
    """Otherwise its silence says nothing: unknown fields, and a text for a truth value."""
    whole = yaml.safe_dump_all(
        of_kind("StatefulSet", "production")[:1] + of_kind("ScaledObject", "production")[:1]
    )
    wrongs = ("serviceName: ", "serviceNames: "), ("enableServiceLinks: false", "enableServiceLinks: never")
    files = []
    for number, (before, after) in enumerate((*wrongs, ("maxReplicaCount: ", "maxReplicas: "))):
        assert before in whole
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(whole.replace(before, after, 1), encoding="utf-8")
    assert conform("1.37", *files)["summary"] == {"valid": 3, "invalid": 3, "errors": 0, "skipped": 0}


def conform(version: str, *files: Path) -> dict[str, Any]:
    name = "{{.ResourceKind}}{{.KindSuffix}}.json"
    places = [f"{tool(f'kubernetes-{version}')}/{name}", f"{SCHEMAS}/{name}"]
    options = [word for place in places for word in ("-schema-location", place)]
    # One at a time: several would each compile all schemas for themselves.
    done = said(tool("kubeconform"), "-n", "1", "-strict", "-summary", "-output", "json", *options, *files)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_readme_has_the_table_of_the_values() -> None:
    """`python -m tools.chart_readme` writes it."""
    assert (CHART / "README.md").read_text(encoding="utf-8") == page()
