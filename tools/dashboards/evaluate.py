"""Asks a real Prometheus, on a running local stack, for all that alerts and panels ask for.

python -m tools.dashboards.evaluate --targets DATA_FOLDER/prometheus-targets.json [--targets MORE.json] [--seconds 120]

Starts Debian's Prometheus with deploy/prometheus/prometheus.yml (these targets, a scrape every 5 s), waits until it has
seen enough, and writes a Markdown table to standard output: each alert's expression without its comparisons, each
panel's query. Exit 1 where a rule failed, or where one returned nothing and `EMPTY` doesn't say why it may.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml

from hopline.local.ports import free_ports
from tools.chart_tools import tool
from tools.dashboards.__main__ import DASHBOARDS
from tools.dashboards.promql import parse, selectors, without_comparisons
from tools.dashboards.variables import filled

ROOT: Final = Path(__file__).resolve().parents[2]
CONFIG: Final = ROOT / "deploy" / "prometheus" / "prometheus.yml"
RULES: Final = ROOT / "helm" / "hopline" / "files" / "rules.yaml"
_START_SECONDS = 30.0
#: Metrics that a healthy installation may not show, each with the reason.
EMPTY: Final[Mapping[str, str]] = {
    "hopline_model_gpu_memory_bytes": "no GPU on this machine",
    "hopline_search_graph_truncated_total": "no cap of the graph was reached",
    "hopline_search_related_hits_total": "no page had a hit that the graph brought",
    "hopline_search_stale_excerpts_total": "no file was behind its index",
    "hopline_quota_refusals_total": "nobody was over a limit",
    "hopline_watcher_failures_total": "no watch broke",
    "hopline_watcher_undecodable_names_total": "no name was undecodable",
    "ALERTS": "no alert is firing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query and what came of it: `series`, and the first value that is a number."""

    where: str
    expr: str
    series: int
    value: str
    excuse: str = ""

    @property
    def missing(self) -> bool:
        return not self.series and not self.excuse


class Prometheus:
    """One that runs, at an address on this machine."""

    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=30, trust_env=False)

    def get(self, path: str, **query: str) -> Any:
        answer = self._http.get(f"/api/v1/{path}", params=query)
        answer.raise_for_status()
        return answer.json()["data"]

    def ready(self) -> bool:
        try:
            return self._http.get("/-/ready").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def ask(self, where: str, expr: str) -> Asked:
        result = self.get("query", query=expr)["result"]
        names = {selector.metric for selector in selectors(parse(expr))}
        excuse = "" if result else next((EMPTY[name] for name in sorted(names) if name in EMPTY), "")
        values = [series["value"][1] for series in result]
        value = next((text for text in values if text != "NaN"), values[0] if values else "")
        return Asked(where=where, expr=expr, series=len(result), value=value, excuse=excuse)


def configuration(targets: Sequence[Path]) -> dict[str, Any]:
    """The committed one, for these files of targets."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    config["global"] = {"scrape_interval": "5s", "evaluation_interval": "5s"}
    config["rule_files"] = [str(RULES)]
    config["scrape_configs"][0]["file_sd_configs"][0]["files"] = [str(path.resolve()) for path in targets]
    return config


@contextlib.contextmanager
def running(targets: Sequence[Path]) -> Iterator[Prometheus]:
    """Raises RuntimeError where it doesn't start in time."""
    url = f"127.0.0.1:{free_ports(without=set())}"
    with tempfile.TemporaryDirectory(prefix="hopline-prometheus-") as folder:
        config = Path(folder) / "prometheus.yml"
        config.write_text(yaml.safe_dump(configuration(targets)))
        process = subprocess.Popen(  # noqa: S603 - our own tool
            [
                tool("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={url}",
                "--log.level=warn",
            ]
        )
        try:
            server = Prometheus(f"http://{url}")
            deadline = time.monotonic() + _START_SECONDS
            while not server.ready():
                if time.monotonic() > deadline or process.poll() is not None:
                    raise RuntimeError("Prometheus didn't start")
                time.sleep(0.2)
            yield server
        finally:
            process.terminate()
            process.wait(20)


def alert_parts() -> Iterator[tuple[str, str]]:
    """Each alert with each part that it compares, once."""
    seen: set[tuple[str, str]] = set()
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            for part in without_comparisons(parse(rule["expr"])) if "alert" in rule else ():
                found = (rule["alert"], " ".join(str(part.prettify()).split()))
                if found not in seen:
                    seen.add(found)
                    yield found


def panel_queries() -> Iterator[tuple[str, str]]:
    """Those of optional rows are left out: their exporters aren't Hopline's."""
    for board in DASHBOARDS:
        for panel in board.panels(optional=False):
            for query in panel.queries:
                yield f"{board.name}: {panel.title}", filled(query.expr, rate_interval="1m")


def table(asked: Sequence[Asked]) -> Iterator[str]:
    yield "| what asks | query | series | a value |\n| --- | --- | --- | --- |"
    for one in asked:
        count = str(one.series) if not one.excuse else f"0 ({one.excuse})"
        expr = one.expr.replace("|", "\\|")
        yield f"| {one.where} | `{expr}` | {'**none**' if one.missing else count} | {one.value} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=Path, action="append", required=True)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long it scrapes first")
    arguments = parser.parse_args()
    with running(arguments.targets) as server:
        time.sleep(arguments.seconds)
        targets = server.get("targets")["activeTargets"]
        down = [t["labels"]["component"] for t in targets if t["health"] != "up"]
        rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
        failed = [rule["name"] for rule in rules if rule["health"] != "ok"]
        alerts = [server.ask(*found) for found in alert_parts()]
        panels = [server.ask(*found) for found in panel_queries()]
    up = ", ".join(sorted(t["labels"]["component"] for t in targets))
    print(
        f"Targets: {up}; down: {', '.join(down) or 'none'}. Rules: {len(rules)}; failed: {failed or 'none'}.\n"
    )
    print("\n".join(["### Alerts\n", *table(alerts), "\n### Panels\n", *table(panels)]))
    missing = [one for one in (*alerts, *panels) if one.missing]
    print(f"{len(alerts) + len(panels)} queries, {len(missing)} returned nothing", file=sys.stderr)
    return 1 if missing or failed or down else 0


if __name__ == "__main__":
    sys.exit(main())
