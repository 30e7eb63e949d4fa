"""Find a Java that both engines run on: a full JDK, 21 or newer."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexers.errors import ConfigurationError

MINIMUM_VERSION = 21
#: Newest that the engines were run on; newer ones are taken only where nothing else is found.
TRIED_VERSION = 25
#: OpenSearch's vector code needs it, and trimmed runtimes leave it out.
NEEDED_MODULE = "jdk.incubator.vector"

INSTALL_JAVA = (
    "install one: `apt-get install openjdk-21-jdk-headless` (Debian 13, Ubuntu; Debian 12 has 17 only: "
    "take Temurin), `dnf install java-21-openjdk-devel` (Fedora), `brew install openjdk@21` (macOS), "
    "`sdk install java 25-tem` (SDKMAN); or name one with HOPLINE_JAVA_HOME"
)
INSTALL_MAVEN = (
    "`apt-get install maven` (Debian, Ubuntu), `dnf install maven` (Fedora), `brew install maven` (macOS)"
)

_VERSION = re.compile(r'"?(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    home: Path
    version: int

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def system_folders(home: Path) -> tuple[Path, ...]:
    """Folders whose entries are Java homes, in no order of preference."""
    patterns = (
        (Path("/usr/lib/jvm"), "*"),
        (Path("/usr/lib64/jvm"), "*"),
        (Path("/usr/java"), "*"),
        (Path("/opt/java"), "*"),
        (home / ".sdkman/candidates/java", "*"),
        (home / ".jdks", "*"),
        (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home"),
        (home / "Library/Java/JavaVirtualMachines", "*/Contents/Home"),
        (Path("/opt/homebrew/opt"), "openjdk*/libexec/openjdk.jdk/Contents/Home"),
        (Path("/usr/local/opt"), "openjdk*/libexec/openjdk.jdk/Contents/Home"),
    )
    return tuple(path for root, pattern in patterns if _listable(root) for path in sorted(root.glob(pattern)))


def find_java(
    env: Mapping[str, str],
    *,
    folders: Sequence[Path] | None = None,
    may_run: Callable[[Path], bool] = lambda _: True,
) -> Java:
    """HOPLINE_JAVA_HOME, JAVA_HOME, then the system's folders: the newest of those that were tried.

    A named HOPLINE_JAVA_HOME is taken or refused, never passed over. `may_run` says whether the engines'
    user can read a home. Raises ConfigurationError that says what was looked at and what to install.
    """
    if named := env.get("HOPLINE_JAVA_HOME"):
        java, refusal = inspect(Path(named), may_run)
        if java is None:
            needed = f"Java {MINIMUM_VERSION} or newer is needed"
            raise ConfigurationError(f"HOPLINE_JAVA_HOME={named}: {refusal}; {needed}; {INSTALL_JAVA}")
        return java
    refusals: list[str] = []
    found: list[Java] = []
    system = system_folders(Path.home()) if folders is None else folders
    for home in _candidates(env, system):
        java, refusal = inspect(home, may_run)
        if java is None:
            refusals.append(f"{home}: {refusal}")
            continue
        if str(home) == env.get("JAVA_HOME"):
            return java
        found.append(java)
    if found:
        return min(found, key=_preference)
    seen = "; ".join(refusals) or "none found"
    raise ConfigurationError(f"the engines need a JDK {MINIMUM_VERSION} or newer ({seen}); {INSTALL_JAVA}")


def find_maven(path: str | None) -> Path:
    """Maven fetches the engines' artifacts. Raises ConfigurationError with the command that installs it."""
    found = shutil.which("mvn", path=path)
    if found is None:
        msg = f"Maven (mvn), which downloads the engines, is not on PATH; install it: {INSTALL_MAVEN}"
        raise ConfigurationError(msg)
    return Path(found)


def inspect(home: Path, may_run: Callable[[Path], bool]) -> tuple[Java | None, str]:
    """The Java in `home`, or None and why it won't do."""
    if not (home / "bin" / "java").is_file():
        return None, "no bin/java in it"
    release = _release(home)
    version = parse_version(release.get("JAVA_VERSION", "")) or _ask(home)
    if version is None:
        return None, "doesn't say its version"
    if version < MINIMUM_VERSION:
        return None, f"Java {version}"
    modules = release.get("MODULES", NEEDED_MODULE)
    if NEEDED_MODULE not in modules.split():
        return None, f"a trimmed runtime without {NEEDED_MODULE}; a full JDK is needed"
    if not may_run(home):
        return None, "not readable by the user that runs OpenSearch"
    return Java(home=home, version=version), ""


def parse_version(text: str) -> int | None:
    """The feature release of `21.0.4`, `"25"` or `1.8.0_402`."""
    match = _VERSION.match(text)
    return int(match[1]) if match else None


def parse_release(text: str) -> dict[str, str]:
    """The `release` file of a JDK: KEY="value" lines."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip().strip('"') for key, sign, value in pairs if sign}


def _release(home: Path) -> dict[str, str]:
    try:
        return parse_release((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}


def _ask(home: Path) -> int | None:
    command = [str(home / "bin" / "java"), "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - a found JDK
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return parse_version(match[1]) if match else None


def _candidates(env: Mapping[str, str], system: Sequence[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    on_path = shutil.which("java", path=env.get("PATH"))
    named = [Path(env["JAVA_HOME"])] if env.get("JAVA_HOME") else []
    linked = [Path(on_path).resolve().parent.parent] if on_path else []
    for home in (*named, *system, *linked):
        real = home.resolve()
        if real not in seen and (home in named or (home / "bin" / "java").is_file()):
            seen.add(real)
            yield home


def _preference(java: Java) -> tuple[bool, int, str]:
    untried = java.version > TRIED_VERSION
    return untried, java.version if untried else -java.version, str(java.home)


def _listable(root: Path) -> bool:
    try:
        return root.is_dir()
    except OSError:
        return False
