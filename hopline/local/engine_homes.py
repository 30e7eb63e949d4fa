"""The engines' files: fetched once by Maven into a temporary folder, checked, then renamed into the cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hopline.local.java import Java, find_maven
from hopline.local.manifest import damaged_archive, first_fault, write_manifest
from hopline.local.maven import FETCH_TIMEOUT_SECONDS, Maven, Say
from indexers.errors import ConfigurationError, HoplineError

CHECKOUT = Path(__file__).resolve().parents[2] / "deploy" / "engines"
#: Top-level name under which a wheel carries the repository's `deploy/engines/` (setup.py).
PACKAGE = "hopline_engines"
_VERSION = re.compile(r"<engine\.version>([^<]+)</engine\.version>")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHome:
    name: str
    version: str
    folder: Path


def template(engine: str, file: str) -> Path:
    """A file of `deploy/engines/`: of this checkout, else of the installed package."""
    installed = importlib.util.find_spec(PACKAGE)
    packaged: Sequence[str] = (installed and installed.submodule_search_locations) or ()
    for root in (CHECKOUT, *map(Path, packaged)):
        path = root / engine / file
        if path.is_file():
            return path
    msg = f"{engine}/{file} is neither in {CHECKOUT} nor in the installed package: install hopline again"
    raise ConfigurationError(msg)


def ensure_home(
    engine: str, *, cache_dir: Path, java: Java, say: Say, timeout_seconds: float = FETCH_TIMEOUT_SECONDS
) -> EngineHome:
    """The verified folder of one engine, fetched first where it is missing or damaged."""
    pom = template(engine, "pom.xml")
    source = hashlib.sha256(pom.read_bytes()).hexdigest()
    version = _version(pom)
    home = EngineHome(name=engine, version=version, folder=cache_dir / f"{engine}-{version}")
    if first_fault(home.folder, source=source) is None:
        return home
    with _exclusive(cache_dir / f".{engine}.lock", say):
        fault = first_fault(home.folder, source=source)
        if fault is not None:
            if home.folder.exists():
                say(f"{engine} {version} in the cache: {fault}; fetching it again")
            mvn = find_maven(os.environ.get("PATH"))
            maven = Maven(executable=mvn, java=java, say=say, timeout_seconds=timeout_seconds)
            _fetch(home, pom=pom, source=source, maven=maven, say=say)
    return home


def _fetch(home: EngineHome, *, pom: Path, source: str, maven: Maven, say: Say) -> None:
    say(f"downloading {home.name} {home.version} (once; kept in {home.folder.parent})")
    work = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.folder.parent))
    try:
        shutil.copy(pom, work / "pom.xml")
        damage = maven.package(work / "pom.xml") or damaged_archive(work / "home")
        if damage:
            say(f"Maven's own copy is damaged ({damage}); downloading into a fresh repository")
            shutil.rmtree(work / "home", ignore_errors=True)
            shutil.rmtree(work / "target", ignore_errors=True)
            damage = maven.package(work / "pom.xml", f"-Dmaven.repo.local={work / 'repository'}")
            damage = damage or damaged_archive(work / "home")
        if damage:
            raise HoplineError(f"{home.name} {home.version} can't be fetched whole: {damage}")
        write_manifest(work / "home", source=source)
        _open_for_reading(work / "home")
        _replace(work / "home", home.folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _replace(made: Path, folder: Path) -> None:
    """Rename into place; what stood there goes only after the new folder is whole."""
    if folder.exists():
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        made.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        made.rename(folder)


def _open_for_reading(folder: Path) -> None:
    """Whatever the umask: the unprivileged user of OpenSearch must read it."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def _version(pom: Path) -> str:
    match = _VERSION.search(pom.read_text(encoding="utf-8"))
    if match is None:
        raise ConfigurationError(f"{pom} names no engine.version")
    return match[1]


@contextlib.contextmanager
def _exclusive(lock: Path, say: Say) -> Iterator[None]:
    """One download at a time; the lock goes with the process, so an interrupted run leaves none."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is downloading it; waiting")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
