"""Folders as root file systems: layers one on the other (overlayfs), and commands run in them as a container's would.

For Linux and root, in a mount namespace of its own (`rehearse` enters one): nothing that is mounted outlives the
process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: What a build needs of the machine to reach a package registry, mounted while a step runs.
_OF_THE_MACHINE = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs")
#: Of the machine's environment, for the same reason.
_PASSED = ("PIP_CERT", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Read-only folders, the lowest first, and the folder that takes what is written; None: nothing can be."""

    lower: tuple[Path, ...]
    upper: Path | None = None

    @contextlib.contextmanager
    def mounted(self, at: Path) -> Iterator[Path]:
        at.mkdir(parents=True, exist_ok=True)
        below = ":".join(str(folder) for folder in reversed(self.lower))
        if self.upper is None:
            options = f"lowerdir={below}"
        else:
            work = self.upper.with_name(f"{self.upper.name}.work")
            for folder in (self.upper, work):
                folder.mkdir(parents=True, exist_ok=True)
            options = f"lowerdir={below},upperdir={self.upper},workdir={work}"
        with mounted("-t", "overlay", "-o", options, "overlay", at):
            yield at

    def then(self, upper: Path) -> Layers:
        """What was written becomes a layer that can't be changed any more."""
        return Layers(lower=self.all, upper=upper)

    @property
    def all(self) -> tuple[Path, ...]:
        return (*self.lower, self.upper) if self.upper else self.lower


@contextlib.contextmanager
def mounted(*arguments: str | Path) -> Iterator[None]:
    """`mount ARGUMENTS`, the last of which is where; unmounted at the end, busy or not."""
    run("mount", *map(str, arguments))
    try:
        yield
    finally:
        run("umount", "--lazy", str(arguments[-1]))


@contextlib.contextmanager
def machine_lent(root: Path) -> Iterator[None]:
    """/dev, names and certificates of this machine."""
    with contextlib.ExitStack() as mounts:
        mounts.enter_context(mounted("--rbind", "/dev", root / "dev"))
        for path in _OF_THE_MACHINE:
            there = root / path.removeprefix("/")
            if Path(path).is_dir():
                there.mkdir(parents=True, exist_ok=True)
            elif not there.exists():
                there.touch()
            mounts.enter_context(mounted("--bind", path, there))
        yield


def build_environment() -> dict[str, str]:
    """Of a RUN, beside the ENV of the stage."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"} | passed


def run(*command: str, env: Mapping[str, str] | None = None) -> None:
    """Raises SystemExit with the command's words where it fails."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )


def copy(source: Path, target: Path) -> None:
    """As COPY: the contents of a folder, or a file; links stay links."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Commands as a container runs them: process 1 of its own, no capability, read-only root."""

    root: Path
    user: str
    folder: str
    env: Mapping[str, str]
    #: Words of `setpriv`, found in the image's own system.
    dropped: Sequence[str] = field(
        default=("--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")
    )

    def start(
        self, *command: str, env: Mapping[str, str] | None = None, network: bool = True, log: Path
    ) -> subprocess.Popen[bytes]:
        """The process is `unshare`; the command is its only child, `first_process` its number out here."""
        uid, _, gid = self.user.partition(":")
        isolated = () if network else ("--net",)
        argv = [
            *(
                "/usr/bin/unshare",
                *isolated,
                "--pid",
                "--fork",
                "--kill-child",
                f"--mount-proc={self.root / 'proc'}",
            ),
            *(
                "/usr/sbin/chroot",
                str(self.root),
                "setpriv",
                f"--reuid={uid}",
                f"--regid={gid}",
                *self.dropped,
            ),
            *("/usr/bin/env", f"--chdir={self.folder}", "--", *command),
        ]
        with log.open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - ours
                argv, env={**self.env, **(env or {})}, stdout=output, stderr=subprocess.STDOUT
            )

    def call(
        self, *command: str, log: Path, env: Mapping[str, str] | None = None, network: bool = True
    ) -> int:
        return self.start(*command, env=env, network=network, log=log).wait()


def end(started: subprocess.Popen[bytes]) -> None:
    """Whatever is left of it. `unshare` alone is not enough: its child has changed its user and outlives it."""
    if started.poll() is None:
        with contextlib.suppress(IndexError, ProcessLookupError):
            os.kill(first_process(started), signal.SIGKILL)
        started.kill()
        started.wait()


def first_process(started: subprocess.Popen[bytes]) -> int:
    return int(Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()[0])
