"""Nothing of what runs here is told to anybody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: With one of these the library keeps quiet by itself.
QUIET = ("CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS")
LOADED = """
from indexers.embedders.factory import load_embedder
from indexers.settings import EmbedderSettings
load_embedder(EmbedderSettings())
"""


def test_a_model_is_loaded_without_a_report_to_the_maker_of_its_library(tmp_path: Path) -> None:
    """Where it reports, it keeps an id of the machine and a queue in the home folder."""
    env = {name: value for name, value in os.environ.items() if name not in QUIET and "XDG" not in name}
    root = str(Path(__file__).resolve().parents[2])
    env |= {"HOME": str(tmp_path), "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", LOADED], env=env, check=True)
    assert list(tmp_path.rglob("*")) == []
