"""Standard streams and arguments as they come: closed, full, left by their reader, or not UTF-8."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from indexers.errors import ConfigurationError, HoplineError


class OutputFailedError(HoplineError):
    """The output can't be written: a full disk, for example. What was asked may be done all the same."""


class _Output(io.FileIO):
    """Where nobody reads any more (`hopline … | head`), the command goes on and says nothing.

    Another fault of standard output is raised, once.
    """

    _over = False

    def write(self, data: object, /) -> int:
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        if self._over:
            return size
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            self._over = True
            return size
        except OSError as exc:
            self._over = True
            if self.fileno() != 1:
                return size  # nobody could be told; and a log on a full disk stops nothing
            msg = f"the output could not be written: {exc.strerror}"
            raise OutputFailedError(msg) from exc


def take_streams() -> None:
    """Before anything is written or opened: a closed stream's number must not become another file's."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the process
    sys.stdout, sys.stderr = _lasting(1, sys.stdout), _lasting(2, sys.stderr)


def _lasting(number: int, stream: TextIO | None) -> TextIO:
    raw = _Output(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )


def require_text(arguments: Sequence[str]) -> None:
    """Raises ConfigurationError for an argument that isn't UTF-8; the rest may count on it."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError as exc:
            msg = f"argument {number} isn't UTF-8: {ascii(os.fsencode(argument))[1:]}"
            raise ConfigurationError(msg) from exc


def read_text() -> str:
    """All of standard input. Raises ConfigurationError where it isn't UTF-8."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as exc:
        msg = "standard input isn't UTF-8 text; `hopline write-file PATH` takes any bytes"
        raise ConfigurationError(msg) from exc
