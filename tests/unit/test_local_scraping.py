"""The file that tells a Prometheus where the local stack's processes are."""

from __future__ import annotations

import json
from pathlib import Path

from hopline.local.scraping import COMPONENTS, target_groups, write_targets
from hopline.local.services import service_specs
from hopline.local.state import StackPlan
from hopline.settings import LocalSettings, Settings
from search_api.settings import ApiSettings


def settings_in(folder: Path) -> Settings:
    return Settings(local=LocalSettings(data_dir=folder), api=ApiSettings(port=18_999))


def test_every_process_of_ours_is_a_target_with_its_component(tmp_path: Path) -> None:
    specs = service_specs(settings_in(tmp_path), StackPlan())
    write_targets(tmp_path / "prometheus-targets.json", target_groups(specs))
    found = json.loads((tmp_path / "prometheus-targets.json").read_text())
    assert [group["labels"] for group in found] == [
        {"component": name} for name in ("ingest", "embed", "extract", "link", "query", "watcher")
    ]
    assert [group["targets"] for group in found] == [[spec.url.removeprefix("http://")] for spec in specs]
    assert found[4]["targets"] == ["127.0.0.1:18999"]


def test_no_process_of_ours_is_forgotten(tmp_path: Path) -> None:
    assert {spec.name for spec in service_specs(settings_in(tmp_path), StackPlan())} == COMPONENTS.keys()


def test_after_a_stop_nothing_is_looked_for(tmp_path: Path) -> None:
    write_targets(tmp_path / "prometheus-targets.json", ())
    assert json.loads((tmp_path / "prometheus-targets.json").read_text()) == []
