"""The demo's last words: what must be unset so that its commands work in the reader's shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopline.cli.demo import last_words
from hopline.local import demo

KEPT = {"HOPLINE_JAVA_HOME": "/jdk", "HOPLINE_EMBEDDER__KIND": "onnx", "HOPLINE_LOCAL__CACHE_DIR": "/cache"}
CONTRADICTING = {
    "HOPLINE_LOCAL__DATA_DIR": "/data",
    "hopline_prefix": "mine",
    "HOPLINE_VAULTS": "[]",
    "HOPLINE_API_KEY": "secret",
}


def test_variables_that_the_demo_leaves_out_are_named() -> None:
    env = KEPT | CONTRADICTING | {"PATH": "/bin", "HOPLINE_CONFIG": "mine.toml"}
    assert demo.left_out(env) == (
        "HOPLINE_API_KEY",
        "HOPLINE_LOCAL__DATA_DIR",
        "HOPLINE_VAULTS",
        "hopline_prefix",
    )


def test_the_demos_commands_see_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (KEPT | CONTRADICTING).items():
        monkeypatch.setenv(name, value)
    seen = demo.DemoCommands.on_demo().env
    assert {name: seen[name] for name in seen if name.upper().startswith("HOPLINE_")} == KEPT | {
        "HOPLINE_CONFIG": str(demo.config_file())
    }


def test_the_last_words_unset_them_before_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "default_data_dir", lambda: tmp_path / "hopline")
    lines = last_words(KEPT | CONTRADICTING).splitlines()
    names = "HOPLINE_API_KEY HOPLINE_LOCAL__DATA_DIR HOPLINE_VAULTS hopline_prefix"
    assert lines[:2] == [
        f"  unset {names}  # the demo leaves these aside",
        f"  export HOPLINE_CONFIG={tmp_path / 'hopline-demo' / 'demo.toml'}",
    ]
    assert last_words(KEPT).splitlines() == lines[1:]


def root(state: str, last_scan: object = None) -> dict[str, object]:
    return {"root": "r", "state": state, "files": 0, "last_scan": last_scan}


@pytest.mark.parametrize(
    ("vaults", "lag", "done"),
    [
        ([], 0, False),
        ([root("scanning")], 0, False),
        ([root("watching", {"files": 1})], 0, True),
        ([root("watching", {"files": 1})], 3, False),
        # The memory tree, in which nobody has written yet.
        ([root("watching", {"files": 1}), root("watching")], 0, True),
        ([root("scanning"), root("watching")], 0, False),
    ],
)
def test_it_waits_for_first_scans_and_for_the_agents(
    vaults: list[dict[str, object]], lag: int, *, done: bool
) -> None:
    assert demo.is_done({"vaults": vaults, "lag": {"ingest": lag}}, ["ingest"]) is done
