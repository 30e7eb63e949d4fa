"""What an image holds, as CycloneDX JSON: the installed packages, and the models among them with their own licences.

python -m tools.images.sbom ENVIRONMENT     writes ENVIRONMENT/sbom.cdx.json; needs cyclonedx-bom

The same environment gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

#: Folder of `models/` → SPDX id of its weights; NOTICE says more.
LICENCES: Final = {"e5-small-enko": "MIT", "gliner-mini": "CC-BY-SA-4.0"}
WEIGHTS: Final = "model_int8.onnx"
FILE: Final = "sbom.cdx.json"
#: Of the format, set: a newer cyclonedx-bom must not change it.
_SPECIFICATION: Final = "1.6"


def main() -> None:
    environment = Path(sys.argv[1])
    found = json.loads(_packages(environment))
    models = next(environment.glob("lib/python3*/site-packages/hopline_models"))
    found.setdefault("components", []).extend(model_components(models))
    (environment / FILE).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{environment / FILE}: {len(found['components'])} components")


def model_components(models: Path) -> Iterator[dict[str, Any]]:
    """One for each folder of models. Raises KeyError for a model whose licence isn't said here."""
    for folder in sorted(path for path in models.iterdir() if (path / WEIGHTS).is_file()):
        digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
        yield {
            "type": "machine-learning-model",
            "bom-ref": f"model:{folder.name}",
            "name": folder.name,
            "version": f"sha256-{digest[:12]}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
            "licenses": [{"license": {"id": LICENCES[folder.name]}}],
        }


def _packages(environment: Path) -> str:
    command = [
        *(sys.executable, "-m", "cyclonedx_py", "environment", str(environment / "bin" / "python")),
        *("--pyproject", "pyproject.toml", "--output-reproducible"),
        *("--spec-version", _SPECIFICATION, "--output-format", "JSON"),
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - our own words


if __name__ == "__main__":
    main()
