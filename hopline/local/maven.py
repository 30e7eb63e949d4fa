"""One run of Maven: what arrives is told, a hung download is ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hopline.local.java import Java
from indexers.errors import HoplineError

#: The engines are 160 MB: half an hour is a very slow line, more is one that hangs.
FETCH_TIMEOUT_SECONDS = 1_800.0
Say = Callable[[str], None]

_DOWNLOADED = re.compile(r"Downloaded from \S+: \S*/(\S+) \(([^)]+?) at ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Maven:
    executable: Path
    java: Java
    say: Say
    timeout_seconds: float = FETCH_TIMEOUT_SECONDS

    def package(self, pom: Path, *flags: str) -> str | None:
        """A damaged archive comes back as text; any other failure raises HoplineError."""
        command = [str(self.executable), *flags, "-B", "-f", str(pom), "package"]
        lines: list[str] = []
        with (
            subprocess.Popen(  # noqa: S603 - Maven from PATH
                command,
                env=os.environ | {"JAVA_HOME": str(self.java.home)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # Its Java is a child of a shell script: only the group ends both, and the pipe with them.
                start_new_session=True,
            ) as process,
            _ended_after(process, self.timeout_seconds) as too_slow,
        ):
            _follow(process.stdout, lines, self.say)
            code = process.wait()
        if too_slow.is_set():
            raise HoplineError(
                f"Maven was ended after {self.timeout_seconds:g} s: the download hangs or is very slow. Its last "
                f"line: {lines[-1][:300] if lines else 'none'}. Check the network and mirrors (~/.m2/settings.xml), "
                "then start again: what is whole in Maven's own repository is kept"
            )
        return None if code == 0 else _damage(code, lines)


@contextlib.contextmanager
def _ended_after(process: subprocess.Popen[str], seconds: float) -> Iterator[threading.Event]:
    """Ends the process group after so long, or when the body is left by an exception (Ctrl-C)."""
    too_slow = threading.Event()

    def end() -> None:
        too_slow.set()
        _kill_group(process)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield too_slow
    except BaseException:
        _kill_group(process)
        raise
    finally:
        timer.cancel()


def _kill_group(process: subprocess.Popen[str]) -> None:
    # Not waited for yet, so that the number is still this group's.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _follow(stream: IO[str] | None, lines: list[str], say: Say) -> None:
    count, last = 0, time.monotonic()
    for line in stream or ():
        lines.append(line.strip())
        if match := _DOWNLOADED.search(line):
            count += 1
            if time.monotonic() - last > 1.0 or "MB" in match[2]:
                say(f"  {count} files, now {match[1]} ({match[2]})")
                last = time.monotonic()


def _damage(code: int, lines: list[str]) -> str:
    errors = [line for line in lines if "ERROR" in line] or lines
    text = " ".join(errors[:3])
    if re.search(r"zip|unpack|archive", text, re.IGNORECASE):
        return text[:300]
    raise HoplineError(f"Maven could not fetch the engine (exit {code}): {text[:600]}")
