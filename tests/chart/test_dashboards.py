"""The dashboards: written by the code, true to what is exported, and nothing of that is left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.chart.exported import exported, families, wrong_names
from tests.chart.test_rules import recorded
from tools.dashboards.__main__ import DASHBOARDS, FOLDER, stale
from tools.dashboards.panels import Dashboard
from tools.dashboards.promql import grouped_labels, parse, selectors
from tools.dashboards.variables import filled

#: Metrics that no panel shows, each with the reason.
NOT_SHOWN: Mapping[str, str] = {}

every_dashboard = pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.name)


def panels_of(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for panel in document["panels"]:
        yield panel
        yield from panel.get("panels", ())


def test_committed_files_are_what_the_code_writes() -> None:
    assert stale() == [], "run python -m tools.dashboards"
    assert len(DASHBOARDS) == 5


def test_no_dashboard_takes_the_place_of_another() -> None:
    documents = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    for key in ("uid", "title"):
        assert [value for value, number in Counter(d[key] for d in documents).items() if number > 1] == []
    assert all(document["uid"].startswith("hopline-") for document in documents)
    for document in documents:
        numbers = [panel["id"] for panel in panels_of(document)]
        assert len(set(numbers)) == len(numbers)


@every_dashboard
def test_dashboard_can_be_pointed_at_any_source_and_component(board: Dashboard) -> None:
    document = json.loads(board.text())
    variables = {v["name"]: v for v in document["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "component"]
    assert variables["datasource"]["type"] == "datasource"
    sources = {json.dumps(p["datasource"]) for p in panels_of(document) if "datasource" in p}
    sources |= {json.dumps(t["datasource"]) for p in panels_of(document) for t in p.get("targets", ())}
    assert sources == {json.dumps({"type": "prometheus", "uid": "${datasource}"})}
    own = [query.expr for panel in board.panels(optional=False) for query in panel.queries]
    assert [expr for expr in own if "$component" not in expr or "$namespace" not in expr] == []


@every_dashboard
def test_panels_lie_beside_each_other(board: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(board.text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


@every_dashboard
def test_each_panel_says_what_it_shows_in_which_unit(board: Dashboard) -> None:
    assert [p.title for p in board.panels() if not (p.about.endswith(".") and p.unit and p.queries)] == []
    titles = Counter(panel.title for panel in board.panels())
    assert [title for title, number in titles.items() if number > 1] == []


@every_dashboard
def test_panels_ask_for_what_is_exported(board: Dashboard) -> None:
    wrong = {
        panel.title: found
        for panel in board.panels(optional=False)
        for query in panel.queries
        if (found := wrong_names(filled(query.expr), recorded()))
    }
    assert wrong == {}


@every_dashboard
def test_legends_name_labels_that_the_series_have(board: Dashboard) -> None:
    wrong = [
        (panel.title, query.legend)
        for panel in board.panels()
        for query in panel.queries
        if not set(re.findall(r"\{\{(\w+)\}\}", query.legend))
        <= {label for _, labels in grouped_labels(parse(filled(query.expr))) for label in labels}
        | {name for s in selectors(parse(filled(query.expr))) for name in s.labels}
    ]
    assert wrong == []


def test_only_optional_rows_ask_for_what_others_export_and_say_so() -> None:
    optional = [(b.name, row) for b in DASHBOARDS for row in b.rows if row.optional]
    assert {name for name, _ in optional} == {"engines"}
    for _, row in optional:
        assert row.title.startswith("Optional: ")
        exprs = [query.expr for panel in row.panels for query in panel.queries]
        assert [expr for expr in exprs if families([filled(expr)])] == []


def test_every_metric_is_shown_somewhere() -> None:
    exprs = [filled(q.expr) for b in DASHBOARDS for p in b.panels() for q in p.queries]
    through_rules = families(
        expr for expr in exprs if not any(s.metric in recorded() for s in selectors(parse(expr)))
    )
    every = {found.family for found in exported().values()}
    assert sorted(every - through_rules - NOT_SHOWN.keys()) == []
    assert sorted(NOT_SHOWN.keys() & through_rules) == []
