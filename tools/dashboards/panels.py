"""Dashboards as values, and their JSON (Grafana's classic model, which the sidecar and provisioning by file take)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

#: Every selector has these: variables of the dashboard, where `All` also matches a missing label.
SELECT = 'namespace=~"$namespace", component=~"$component"'
RATE = "$__rate_interval"
_COLUMNS = 24
#: Of the classic model, as Grafana 12 and 13 write it; older ones read it too.
_SCHEMA_VERSION = 42
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """`legend` in Grafana's `{{label}}` form."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """`unit` is one of Grafana's ids (s, ops, percentunit …); `limits`: from these values on yellow, then red."""

    title: str
    about: str
    unit: str
    queries: Sequence[Query]
    kind: Literal["timeseries", "stat"] = "timeseries"
    width: int = 8
    height: int = 8
    stacked: bool = False
    limits: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`optional`: of an exporter that isn't Hopline's; collapsed, and its title says so."""

    title: str
    panels: Sequence[Panel]
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """`name` is the file's; with the prefix `hopline-` it is the uid."""

    name: str
    title: str
    about: str
    rows: Sequence[Row] = field(default_factory=tuple)

    def panels(self, *, optional: bool | None = None) -> Iterator[Panel]:
        """Those of all rows; `optional`: only of such rows, or only of the others."""
        for row in self.rows:
            if optional is None or row.optional == optional:
                yield from row.panels

    def text(self) -> str:
        return json.dumps(_dashboard(self), indent=1, ensure_ascii=False) + "\n"


def rates(metric: str, by: str, *, where: str = "", legend: str = "") -> Query:
    """A counter's steps a second, summed by labels."""
    labels = f"{SELECT}, {where}" if where else SELECT
    return Query(
        expr=f"sum by ({by}) (rate({metric}{{{labels}}}[{RATE}]))",
        legend=legend or " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(",")),
    )


def quantiles(
    metric: str, by: str = "", *, where: str = "", of: Sequence[float] = (0.5, 0.95, 0.99)
) -> list[Query]:
    """Of a histogram, each with the labels it is split by."""
    labels = f"{SELECT}, {where}" if where else SELECT
    split = f"le, {by}" if by else "le"
    names = " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(",") if label)
    return [
        Query(
            expr=f"histogram_quantile({share}, sum by ({split}) (rate({metric}_bucket{{{labels}}}[{RATE}])))",
            legend=f"{names} p{share * 100:g}".strip(),
        )
        for share in of
    ]


def gauges(metric: str, by: str, *, how: str = "sum", where: str = "") -> Query:
    labels = f"{SELECT}, {where}" if where else SELECT
    return Query(
        expr=f"{how} by ({by}) ({metric}{{{labels}}})",
        legend=" ".join(f"{{{{{label.strip()}}}}}" for label in by.split(",")),
    )


def _dashboard(board: Dashboard) -> Json:
    return {
        "uid": f"hopline-{board.name}",
        "title": board.title,
        "description": board.about,
        "tags": ["hopline"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [
            {
                "type": "dashboards",
                "title": "Hopline",
                "tags": ["hopline"],
                "asDropdown": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": _variables()},
        "panels": list(_placed(board.rows)),
    }


def _variables() -> list[Json]:
    return [
        {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"},
        _label_variable("namespace", "Namespace", "label_values(hopline_build_info, namespace)"),
        _label_variable(
            "component",
            "Component",
            'label_values(hopline_build_info{namespace=~"$namespace"}, component)',
        ),
    ]


def _label_variable(name: str, label: str, query: str) -> Json:
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": _DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        # Not "every value that was found": a Prometheus without namespaces has none.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _placed(rows: Sequence[Row]) -> Iterator[Json]:
    """Rows below each other; panels side by side while there is room."""
    top, number = 0, 0
    for row in rows:
        number += 1
        head = {"type": "row", "title": row.title, "id": number, "collapsed": row.optional}
        placed, bottom = _beside(row.panels, top + 1, number)
        number += len(placed)
        yield head | {
            "gridPos": {"x": 0, "y": top, "w": _COLUMNS, "h": 1},
            "panels": placed if row.optional else [],
        }
        top = top + 1 if row.optional else bottom
        if not row.optional:
            yield from placed


def _beside(panels: Sequence[Panel], top: int, number: int) -> tuple[list[Json], int]:
    """The panels from `top` on, and where they end."""
    placed: list[Json] = []
    left, height = 0, 0
    for panel in panels:
        if left + panel.width > _COLUMNS:
            left, top, height = 0, top + height, 0
        number += 1
        place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
        placed.append(_panel(panel, number) | {"gridPos": place})
        left, height = left + panel.width, max(height, panel.height)
    return placed, top + height


def _panel(panel: Panel, number: int) -> Json:
    colours = ("green", "yellow", "red") if len(panel.limits) > 1 else ("green", "red")
    steps = [{"color": c, "value": v} for c, v in zip(colours, (None, *panel.limits), strict=False)]
    custom: Json = {"fillOpacity": 10, "lineWidth": 1, "showPoints": "never", "spanNulls": False}
    if panel.stacked:
        custom |= {"stacking": {"mode": "normal", "group": "A"}}
    defaults: Json = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    options: Json = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    if panel.kind == "stat":
        options = {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": "background",
            "graphMode": "none",
        }
    else:
        defaults |= {"custom": custom}
    return {
        "type": panel.kind,
        "id": number,
        "title": panel.title,
        "description": panel.about,
        "datasource": _DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
                "instant": panel.kind == "stat",
                "range": panel.kind != "stat",
            }
            for place, query in enumerate(panel.queries)
        ],
    }
