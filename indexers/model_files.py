"""Files of models: where the shipped ones lie, and whether a file holds a model at all."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from indexers.errors import ConfigurationError

#: Top-level name under which a wheel carries the repository's `models/` (setup.py).
MODELS_PACKAGE = "hopline_models"


def shipped_folder(name: str, holding: str, *, kind: str, setting: str) -> Path:
    """The folder with the file `holding`: of this checkout, else of the installed package.

    Raises ConfigurationError: `kind` says what is missing, `setting` what to set instead.
    """
    checkout = Path(__file__).resolve().parents[1] / "models"
    installed = importlib.util.find_spec(MODELS_PACKAGE)
    packaged: Sequence[str] = (installed and installed.submodule_search_locations) or ()
    for root in (checkout, *map(Path, packaged)):
        if (root / name / holding).is_file():
            return root / name
    raise ConfigurationError(
        f"the default {kind} model is neither in {checkout} nor in the installed package: "
        f"install hopline again, or set {setting} to a model folder"
    )


def fetched(path: Path) -> Path:
    """The path of a file that is there; ConfigurationError where it only says where Git keeps the content."""
    with path.open("rb") as stream:
        if stream.read(24).startswith(b"version https://git-lfs"):
            raise ConfigurationError(f"{path} is a Git LFS pointer, not the model: run `git lfs pull`")
    return path
