"""The compose file's services as a rehearsal needs them: command, settings, folders, health check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """`source`: a volume's name, or a folder of this machine where `bound`."""

    source: str
    target: str
    bound: bool
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    name: str
    command: tuple[str, ...]
    env: dict[str, str]
    mounts: tuple[Mount, ...]
    #: Words of the check; empty where there is none.
    health: tuple[str, ...]
    profiled: bool


def hopline_services(compose: Path) -> dict[str, Service]:
    """Those that run Hopline's own image, with the defaults of all variables."""
    parts = read_compose(compose)["services"].items()
    return {name: _service(name, part) for name, part in parts if "build" in part}


def read_compose(compose: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(_DEFAULT.sub(r"\1", compose.read_text(encoding="utf-8")))
    return found


def _service(name: str, part: dict[str, Any]) -> Service:
    test = part.get("healthcheck", {}).get("test", [])
    return Service(
        name=name,
        command=tuple(part["command"]) if "command" in part else (),
        env={key: str(value) for key, value in part.get("environment", {}).items()},
        mounts=tuple(_mounts(part.get("volumes", []))),
        health=tuple(test[1:]),
        profiled=bool(part.get("profiles")),
    )


def _mounts(lines: list[str | dict[str, Any]]) -> Iterator[Mount]:
    for line in lines:
        if isinstance(line, dict):
            yield Mount(
                source=line["source"],
                target=line["target"],
                bound=line["type"] == "bind",
                read_only=line.get("read_only", False),
            )
            continue
        source, target, *options = line.split(":")
        bound = source.startswith((".", "/"))
        yield Mount(source=source, target=target, bound=bound, read_only="ro" in options)
