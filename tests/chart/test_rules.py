"""The alert rules: valid, true to what is exported, each with a runbook, a case that fires and one that doesn't."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.exported import wrong_names
from tools.chart_tools import tool
from tools.dashboards.promql import grouped_labels, parse, selectors

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "helm" / "hopline" / "files" / "rules.yaml"
CASES = sorted((ROOT / "tests" / "chart" / "rules").glob("*.test.yaml"))
#: What the chart replaces.
PREFIX = "https://hopline.invalid/runbooks/"


@cache
def groups() -> Sequence[Mapping[str, Any]]:
    loaded: Sequence[Mapping[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    return loaded


def rules(kind: str) -> Iterator[Mapping[str, Any]]:
    yield from (rule for group in groups() for rule in group["rules"] if kind in rule)


def recorded() -> dict[str, frozenset[str]]:
    """Name of a recording rule → the labels that its series have."""
    found: dict[str, frozenset[str]] = {}
    for rule in rules("record"):
        by = [frozenset(labels) for _, labels in grouped_labels(parse(rule["expr"]))]
        bases = [found[s.metric] for s in selectors(parse(rule["expr"])) if s.metric in found]
        found[rule["record"]] = frozenset[str]().union(*by, *bases)
    return found


def run(*arguments: str | Path, cwd: Path) -> str:
    """What promtool says; fails with all of it where it isn't content."""
    done = subprocess.run(
        [tool("promtool"), *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    assert "SUCCESS" in run("check", "rules", RULES, cwd=tmp_path)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".test.yaml"))
def test_alerts_fire_when_they_must_and_only_then(path: Path, tmp_path: Path) -> None:
    """With the rules that the file is about: promtool evaluates each at each step, needed or not."""
    cases = yaml.safe_load(path.read_text())
    assert (path.parent / cases["rule_files"][0]).resolve() == RULES
    named = {check["alertname"] for case in cases["tests"] for check in case["alert_rule_test"]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": list(groups_for(named))}))
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases | {"rule_files": ["rules.yaml"]}))
    assert "SUCCESS" in run("test", "rules", "cases.yaml", cwd=tmp_path)


def groups_for(alerts: set[str]) -> Iterator[dict[str, Any]]:
    """The groups with these alerts and what is recorded for them, in their order."""
    asked = [rule["expr"] for rule in rules("alert") if rule["alert"] in alerts]
    asked += [rule["expr"] for rule in rules("record") if any(rule["record"] in expr for expr in asked)]
    for group in groups():
        kept = [
            rule
            for rule in group["rules"]
            if rule.get("alert") in alerts or any(rule.get("record", "none") in expr for expr in asked)
        ]
        if kept:
            yield {**group, "rules": kept}


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    """Each with each of its severities and windows, by its own labels."""
    fired: set[tuple[str, str, str]] = set()
    silent: set[str] = set()
    for path in CASES:
        for case in yaml.safe_load(path.read_text())["tests"]:
            for check in case["alert_rule_test"]:
                seen = [alert["exp_labels"] for alert in check["exp_alerts"]]
                fired |= {(check["alertname"], s["severity"], s.get("window", "")) for s in seen}
                silent |= set() if seen else {check["alertname"]}
    own = {(r["alert"], r["labels"]["severity"], r["labels"].get("window", "")) for r in rules("alert")}
    assert (sorted(own - fired), sorted({name for name, _, _ in own} - silent)) == ([], [])


@pytest.mark.parametrize("rule", list(rules("alert")), ids=lambda rule: rule["alert"])
def test_alert_says_what_is_wrong_where_and_what_to_do(rule: Mapping[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert notes["summary"].endswith(".")
    assert "$labels.component" in notes["description"]
    assert "$value" in notes["description"]
    page = ROOT / "docs" / "runbooks" / notes["runbook_url"].removeprefix(PREFIX)
    assert notes["runbook_url"] == PREFIX + page.name
    assert rule["alert"] in page.read_text(), f"{page.name} doesn't speak of the alert that leads to it"


def test_rules_name_what_is_exported() -> None:
    wrong = {
        rule.get("alert") or rule["record"]: found
        for kind in ("record", "alert")
        for rule in rules(kind)
        if (found := wrong_names(rule["expr"], recorded()))
    }
    assert wrong == {}


def test_an_expression_of_something_else_is_noticed() -> None:
    assert wrong_names('rate(hopline_stream_retries_total{tenant="a"}[5m])', {}) == [
        "hopline_stream_retries_total: label tenant"
    ]
    assert wrong_names("sum by (topic) (hopline_stream_lagg_records)", {}) == [
        "hopline_stream_lagg_records",
        "by (topic) of hopline_stream_lagg_records",
    ]
    assert wrong_names('hopline_store_bulk_seconds_bucket{le="0.3"}', {}) == [
        'hopline_store_bulk_seconds_bucket: le="0.3"'
    ]
