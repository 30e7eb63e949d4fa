"""What the processes export, as rules and dashboards name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Histogram

from tools.dashboards.promql import grouped_labels, parse, selectors
from tools.reference import registries

#: Added by whoever scrapes; `component` by the chart and by the local stack's file of targets.
TARGET_LABELS = frozenset({"component", "namespace", "instance", "pod", "job"})
#: What Prometheus itself makes of the rules, and of its scrapes (`component`: the monitors of the chart).
OF_PROMETHEUS = {
    "ALERTS": frozenset({"alertname", "alertstate", "severity"}),
    "up": frozenset({"component", "namespace", "instance", "job"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """`family`: the metric's name without the endings of its series; `buckets`: values of `le`, as they are written."""

    family: str
    labels: frozenset[str]
    buckets: frozenset[str] = frozenset()


@cache
def exported() -> dict[str, Exported]:
    """Series name → what it is, over the registries of all processes."""
    return {name: found for registry in registries().values() for name, found in _series(registry)}


def _series(registry: CollectorRegistry) -> Iterator[tuple[str, Exported]]:
    # The library names no type for all that can describe itself.
    found: set[Any] = set(registry._collector_to_names)
    for collector in found:
        for family in collector.describe():
            labels = frozenset(getattr(collector, "_labelnames", ()))
            if family.type == "histogram":
                yield from _of_histogram(collector, family.name, labels)
            else:
                name = family.name + ("_total" if family.type == "counter" else "")
                yield name, Exported(family=family.name, labels=labels)


def _of_histogram(histogram: Histogram, name: str, labels: frozenset[str]) -> Iterator[tuple[str, Exported]]:
    bounds = frozenset("+Inf" if bound == float("inf") else str(bound) for bound in histogram._upper_bounds)
    for ending in ("_sum", "_count"):
        yield name + ending, Exported(family=name, labels=labels)
    yield name + "_bucket", Exported(family=name, labels=labels | {"le"}, buckets=bounds)


def wrong_names(text: str, recorded: dict[str, frozenset[str]]) -> list[str]:
    """Metrics, labels and buckets of an expression that nothing exports.

    `recorded`: name of a recording rule → its labels.
    """
    root = parse(text)
    known = {name: found.labels for name, found in exported().items()} | recorded | OF_PROMETHEUS
    wrong = []
    for selector in selectors(root):
        if selector.metric not in known:
            wrong.append(selector.metric)
            continue
        extra = selector.labels - known[selector.metric] - TARGET_LABELS
        wrong += [f"{selector.metric}: label {label}" for label in sorted(extra)]
        bounds = exported()[selector.metric].buckets if selector.metric in exported() else frozenset()
        wrong += [f'{selector.metric}: le="{v}"' for k, v in selector.equal if k == "le" and v not in bounds]
    for inside, labels in grouped_labels(root):
        there = frozenset[str]().union(*(known.get(s.metric, frozenset()) for s in selectors(inside)))
        wrong += [
            f"by ({label}) of {inside.prettify()}" for label in labels if label not in there | TARGET_LABELS
        ]
    return wrong


def families(texts: Iterable[str]) -> set[str]:
    """Metrics of ours that expressions name, without the endings of their series."""
    names = {selector.metric for text in texts for selector in selectors(parse(text))}
    return {found.family for name, found in exported().items() if name in names}
