"""What an installation without a checkout has: the defaults must work, offline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
#: Folder of the repository → its name in the wheel (setup.py).
TRAVELS = {
    "hopline": "hopline",
    "indexers": "indexers",
    "search_api": "search_api",
    "streams": "streams",
    "models": "hopline_models",
    "deploy/engines": "hopline_engines",
    "examples/vault": "hopline_examples",
    "tools/train_entities": "hopline_training",
}
ASKED = """
import json, sys, warnings
import setuptools
from distutils.core import run_setup
warnings.simplefilter("ignore")
of = run_setup("setup.py", stop_after="config")
of.get_command_obj("egg_info").egg_base = sys.argv[1]
build = of.get_command_obj("build_py")
build.build_lib = ""
build.ensure_finalized()
print("\\n" + json.dumps(build.get_outputs(include_bytecode=False)))
"""


def files_of_the_wheel(folder: Path) -> set[str]:
    command = [sys.executable, "-c", ASKED, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def files_of_the_repository() -> list[str]:
    command = ["git", "ls-files", "-z", "--", *TRAVELS]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


def test_the_wheel_holds_the_code_the_models_the_engines_and_the_example_vault(tmp_path: Path) -> None:
    wanted = {
        str(PurePosixPath(name) / PurePosixPath(file).relative_to(folder))
        for file in files_of_the_repository()
        for folder, name in TRAVELS.items()
        if PurePosixPath(file).is_relative_to(folder)
    }
    assert {file for file in wanted if file.startswith("hopline_models/")} >= {
        "hopline_models/e5-small-enko/model_int8.onnx",
        "hopline_models/gliner-mini/model_int8.onnx",
    }
    assert sorted(wanted - files_of_the_wheel(tmp_path)) == []
