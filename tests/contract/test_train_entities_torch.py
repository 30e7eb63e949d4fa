"""A few steps of training, from labelled texts to a model that the agent loads. Needs the extra `gpu`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from indexers.extractors.factory import load_extractor
from indexers.settings import ExtractorSettings
from tests.labelled import AGENT_MEMORY, read_labelled

pytestmark = [
    pytest.mark.gpu,
    # The library and torch warn of their own future.
    pytest.mark.filterwarnings("ignore"),
]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped model's hand-labelled texts, as a team would write its own."""
    file = tmp_path_factory.mktemp("labelled") / "labelled.jsonl"
    rows = [
        {
            "text": text.text,
            "entities": [
                {"start": start, "end": end, "label": label, "surface": text.text[start:end]}
                for start, end, label in sorted(text.names)
            ],
        }
        for text in read_labelled(AGENT_MEMORY)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def test_the_shipped_model_learns_and_is_loaded_again(labelled: Path, tmp_path: Path) -> None:
    out = tmp_path / "ours"
    command = [sys.executable, "-m", "hopline", "train-entities", str(labelled), "--test", str(labelled)]
    options = ["--out", str(out), "--epochs", "4", "--learning-rate", "1e-4", "--json"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    # By the texts that it learnt from: that it learns is shown, not how well.
    assert report["after"]["all"]["f1"] > report["before"]["all"]["f1"] > 60
    assert "of 16, loss" in done.stderr
    assert {path.name for path in out.iterdir()} >= {
        "gliner_config.json",
        "model.safetensors",
        "model_int8.onnx",
        "tokenizer.json",
    }
    window = "Alice Novak lives in Berlin."
    for backend in ("onnx", "torch"):
        settings = ExtractorSettings.model_validate({"backend": backend, "model": str(out)})
        spans = load_extractor(settings).extract([window], ["person", "location"], threshold=0.5)[0]
        assert ("Alice Novak", "person") in {(window[s.start : s.end], s.label) for s in spans}
    again = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (again.returncode, "exists" in again.stderr) == (2, True)
