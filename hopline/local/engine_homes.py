"""The engines' files: fetched once by Maven into a temporary folder, checked, then renamed into the cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hopline.local.java import Java, find_maven
from hopline.local.manifest import damaged_archive, first_fault, write_manifest
from indexers.errors import ConfigurationError, HoplineError

TEMPLATES = Path(__file__).resolve().parents[2] / "deploy" / "engines"
FETCH_TIMEOUT_SECONDS = 1_800
Say = Callable[[str], None]

_VERSION = re.compile(r"<engine\.version>([^<]+)</engine\.version>")
_DOWNLOADED = re.compile(r"Downloaded from \S+: \S*/(\S+) \(([^)]+?) at ")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHome:
    name: str
    version: str
    folder: Path


def template(engine: str, file: str) -> Path:
    path = TEMPLATES / engine / file
    if not path.is_file():
        msg = f"{path} is missing: the local stack runs from a checkout (`pip install -e .`)"
        raise ConfigurationError(msg)
    return path


def ensure_home(engine: str, *, cache_dir: Path, java: Java, say: Say) -> EngineHome:
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
            _fetch(home, pom=pom, source=source, java=java, say=say)
    return home


def _fetch(home: EngineHome, *, pom: Path, source: str, java: Java, say: Say) -> None:
    maven = find_maven(os.environ.get("PATH"))
    say(f"downloading {home.name} {home.version} (once; kept in {home.folder.parent})")
    work = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.folder.parent))
    try:
        shutil.copy(pom, work / "pom.xml")
        command = [str(maven), "-B", "-f", str(work / "pom.xml"), "package"]
        damage = _run_maven(command, java=java, say=say) or damaged_archive(work / "home")
        if damage:
            say(f"Maven's own copy is damaged ({damage}); downloading into a fresh repository")
            shutil.rmtree(work / "home", ignore_errors=True)
            shutil.rmtree(work / "target", ignore_errors=True)
            command.insert(1, f"-Dmaven.repo.local={work / 'repository'}")
            damage = _run_maven(command, java=java, say=say) or damaged_archive(work / "home")
        if damage:
            raise HoplineError(f"{home.name} {home.version} can't be fetched whole: {damage}")
        write_manifest(work / "home", source=source)
        _open_for_reading(work / "home")
        _replace(work / "home", home.folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run_maven(command: list[str], *, java: Java, say: Say) -> str | None:
    """Run Maven, telling what arrives. A damaged archive comes back as text; any other failure raises."""
    env = os.environ | {"JAVA_HOME": str(java.home)}
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - Maven from PATH
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as maven:
        try:
            _follow(maven.stdout, lines, say)
            code = maven.wait(timeout=60)
        except BaseException:
            maven.kill()
            raise
    if code == 0:
        return None
    errors = [line for line in lines if "ERROR" in line] or lines
    text = " ".join(errors[:3])
    if re.search(r"zip|unpack|archive", text, re.IGNORECASE):
        return text[:300]
    raise HoplineError(f"Maven could not fetch the engine (exit {code}): {text[:600]}")


def _follow(stream: IO[str] | None, lines: list[str], say: Say) -> None:
    count, last = 0, time.monotonic()
    for line in stream or ():
        lines.append(line.strip())
        if match := _DOWNLOADED.search(line):
            count += 1
            if time.monotonic() - last > 1.0 or "MB" in match[2]:
                say(f"  {count} files, now {match[1]} ({match[2]})")
                last = time.monotonic()


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
