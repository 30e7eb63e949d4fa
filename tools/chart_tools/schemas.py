"""Kubernetes' own schemas as kubeconform reads them without the network."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from tools.chart_tools.errors import ChartToolError

SCHEMAS_PACKAGE = "kubernetes-validate"
#: The newest; it holds 1.25 to 1.37.
SCHEMAS_VERSION = "1.37.0"
#: The oldest that the chart supports (`kubeVersion`), and the newest there are schemas of.
KUBERNETES_VERSIONS = ("1.29", "1.37")


def unpack_schemas(wheel: Path, version: str, folder: Path) -> None:
    """One file a kind, unknown fields refused. References lead to the file beside, not to the web.

    Without descriptions, which are most of the text: kubeconform reads all definitions anew for each kind.
    """
    wanted = f"kubernetes_validate/kubernetes-json-schema/v{version}.0-local-strict/"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(wanted) and name.endswith(".json")]
        if not names:
            raise ChartToolError(f"{wheel.name} has no schemas of Kubernetes {version}")
        for name in names:
            text = archive.read(name).decode()
            text = text.replace('"/api/_definitions.json#', '"_definitions.json#')
            schema = json.loads(text, object_hook=_without_description)
            schema.pop("$id", None)
            (folder / PurePosixPath(name).name).write_text(json.dumps(schema), encoding="utf-8")


def _without_description(part: dict[str, Any]) -> dict[str, Any]:
    """A field may have that name, too: then it is no text."""
    if isinstance(part.get("description"), str):
        del part["description"]
    return part
