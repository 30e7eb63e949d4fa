"""The chart as it is rendered: objects of each supported set-up, for tests to look at."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.chart_tools import tool

CHART = Path(__file__).resolve().parent.parent / "helm" / "hopline"
SET_UPS = tuple(
    sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))
)
AGENTS = ("ingest", "embed", "extract", "link")
RELEASE = "hopline"


@dataclass(frozen=True, slots=True)
class Workload:
    """An object that makes pods, its pods' labels and specification, and the containers of these."""

    kind: str
    name: str
    labels: Mapping[str, str]
    pod: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def component(self) -> str:
        return self.labels["app.kubernetes.io/component"]

    @property
    def containers(self) -> Sequence[Mapping[str, Any]]:
        return [*self.pod.get("initContainers", ()), *self.pod["containers"]]


def values_file(set_up: str) -> Path:
    return CHART / "ci" / f"{set_up}-values.yaml"


def template(set_up: str, *options: str, kubernetes: str = "1.37.0") -> subprocess.CompletedProcess[str]:
    """`helm template`, whatever comes of it; `options` such as `--set a=b`."""
    command = [str(tool("helm")), "template", RELEASE, str(CHART), "--namespace", "memory"]
    more = ["--values", str(values_file(set_up)), "--kube-version", kubernetes, *options]
    return subprocess.run([*command, *more], capture_output=True, text=True, timeout=60, check=False)


@functools.cache
def manifest(set_up: str, *options: str) -> str:
    done = template(set_up, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def objects(set_up: str, *options: str) -> tuple[dict[str, Any], ...]:
    """Not to be changed: all tests of a process look at the same ones."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(found for found in yaml.load_all(manifest(set_up, *options), loader) if found)


def of_kind(kind: str, set_up: str, *options: str) -> list[dict[str, Any]]:
    return [found for found in objects(set_up, *options) if found["kind"] == kind]


def workloads(set_up: str, *options: str) -> Iterator[Workload]:
    for found in objects(set_up, *options):
        if found["kind"] in ("Deployment", "StatefulSet", "Job"):
            pods = found["spec"]["template"]
            yield Workload(
                found["kind"],
                found["metadata"]["name"],
                pods["metadata"]["labels"],
                pods["spec"],
                found["spec"],
            )


def env_of(container: Mapping[str, Any]) -> dict[str, Any]:
    """Name → text, or where it comes from."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container.get("env", ())}


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes an object with these labels; an empty one takes all."""
    for rule in selector.get("matchExpressions", ()):
        if rule["operator"] != "In":
            raise NotImplementedError(rule["operator"])
        if labels.get(rule["key"]) not in rule["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
