"""The project's own files say what the code says."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Imported by nothing here, with the reason beside each in pyproject.toml: named beforehand, or pinned.
REASONED = {"mode-streaming"}
IMPORT = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {normalised(re.split(r"[<>=\[ ]", line)[0]) for line in project["dependencies"]}
    distributions = packages_distributions()
    imported = {
        normalised(distribution)
        for package in ("hopline", "indexers", "search_api", "streams")
        for file in (ROOT / package).rglob("*.py")
        for module in IMPORT.findall(file.read_text())
        for distribution in distributions.get(module, ())
    }
    assert named - imported == REASONED


def test_what_is_excused_from_a_rule_says_why() -> None:
    bare = [
        f"{file.relative_to(ROOT)}:{number}"
        for package in ("hopline", "indexers", "search_api", "streams", "tests", "bench", "tools")
        for file in sorted((ROOT / package).rglob("*.py"))
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if re.search(r"# noqa: [A-Z0-9, ]+$", line)
    ]
    assert bare == []


def test_only_the_gate_prepares_a_search() -> None:
    """One is sent as it is: nothing adds a principal to it any more."""
    makers = [
        str(file.relative_to(ROOT))
        for package in ("hopline", "indexers", "search_api", "streams")
        for file in sorted((ROOT / package).rglob("*.py"))
        if re.search(r"(?<!class )\bPreparedSearch\(", file.read_text())
    ]
    assert makers == ["indexers/opensearch/reads.py"]


def test_the_licence_of_each_shipped_model_is_named() -> None:
    notice, readme = (ROOT / "NOTICE").read_text(), (ROOT / "README.md").read_text()
    models = sorted(folder.name for folder in (ROOT / "models").iterdir() if folder.is_dir())
    assert {name for name in models if name in notice and f"models/{name}/MODEL_CARD.md" in readme} == set(
        models
    )
