"""Lines of a set's files as typed values. What is wrong is told by file, line and field."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO, TypeVar

import msgspec

from indexers.errors import WrongUsage

T = TypeVar("T", bound=msgspec.Struct)


class WrongSet(WrongUsage):
    """A set isn't as docs/how-to/evaluate-retrieval.md says; the text names the place."""


def one_of(folder: Path, *names: str) -> Path:
    """The first of these files that is there. Raises WrongSet where none is."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    msg = f"{folder} has no {' or '.join(names)}"
    raise WrongSet(msg)


def json_lines(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Number of the line and what it says; blank lines are skipped."""
    for number, line in text_lines(path):
        try:
            yield number, msgspec.json.decode(line, type=kind)
        except msgspec.MsgspecError as exc:
            msg = f"{path}, line {number}: {exc}"
            raise WrongSet(msg) from exc


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with something in them, numbered from 1; `.gz` is unpacked."""
    try:
        with _opened(path) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as exc:
        msg = f"{path} isn't UTF-8: {exc.reason} at byte {exc.start}"
        raise WrongSet(msg) from exc
    except (OSError, EOFError, zlib.error) as exc:
        msg = f"{path} can't be read: {exc}"
        raise WrongSet(msg) from exc


def _opened(path: Path) -> AbstractContextManager[TextIO]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
