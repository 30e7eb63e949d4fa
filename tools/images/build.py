"""Carries out the stages of a Dockerfile on folders: FROM, COPY, RUN, ENV and WORKDIR as they stand there."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.images.dockerfile import Stage, Step, filled, kept
from tools.images.layers import Layers, build_environment, copy, machine_lent, run


@dataclass(kw_only=True)
class Built:
    layers: Layers
    env: dict[str, str]
    folder: str
    #: Of ARG: known to the stage's own steps, not to what runs later.
    arguments: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Builder:
    """Each stage once, and only those that are asked for."""

    stages: Mapping[str, Stage]
    context: Path
    base: Path
    work: Path
    #: The folders are there from an earlier run: only what the steps say of the environment is taken.
    again: bool = False
    #: What was done: stage, step, seconds.
    done: list[tuple[str, str, float]] = field(default_factory=list)
    _built: dict[str, Built] = field(default_factory=dict)

    def build(self, name: str) -> Built:
        if name not in self._built:
            self._built[name] = self._build(self.stages[name])
        return self._built[name]

    def _build(self, stage: Stage) -> Built:
        upper = self.work / "stages" / stage.name
        if stage.base in self.stages:
            below = self.build(stage.base)
            built = Built(layers=below.layers.then(upper), env=dict(below.env), folder=below.folder)
        else:
            built = Built(layers=Layers(lower=(self.base,), upper=upper), env={}, folder="/")
        for source in [named for step in stage.steps if (named := _source(step))]:
            self.build(source)
        with built.layers.mounted(self.work / "root") as root:
            for step in stage.steps:
                began = time.monotonic()
                self._take(step, built, root)
                self.done.append((stage.name, f"{step.instruction} {step.text}", time.monotonic() - began))
        return built

    def _take(self, step: Step, built: Built, root: Path) -> None:
        match step.instruction:
            case "ARG":
                built.arguments |= step.pairs
            case "ENV":
                built.env |= {
                    name: filled(value, built.arguments | built.env) for name, value in step.pairs.items()
                }
            case "WORKDIR":
                built.folder = step.text
                (root / step.text.removeprefix("/")).mkdir(parents=True, exist_ok=True)
            case "COPY" | "RUN" if self.again:
                pass
            case "COPY":
                self._copy(step, built, root)
            case "RUN":
                print(f"RUN {step.text}", flush=True)
                words = f"cd {shlex.quote(built.folder)} && {step.text}"
                with machine_lent(root):
                    run(
                        "chroot",
                        str(root),
                        "/bin/sh",
                        "-c",
                        words,
                        env=build_environment() | built.arguments | built.env,
                    )

    def _copy(self, step: Step, built: Built, root: Path) -> None:
        *options, last = step.words
        sources = [word for word in options if not word.startswith("--")]
        target = root / (last if last.startswith("/") else f"{built.folder}/{last}").lstrip("/")
        named = _source(step)
        if named is not None:
            with Layers(lower=self.build(named).layers.all).mounted(self.work / "source") as other:
                for source in sources:
                    copy(other / source.lstrip("/"), target)
            return
        for source in sources:
            for file in [f for f in self._context if f == source or f.startswith(source.rstrip("/") + "/")]:
                inside = file if file == source else file.removeprefix(source.rstrip("/") + "/")
                copy(self.context / file, target / inside)

    @property
    def _context(self) -> list[str]:
        return kept(self.context / ".dockerignore", _files(self.context))


def _source(step: Step) -> str | None:
    """The stage that a COPY takes from."""
    words = step.words if step.instruction == "COPY" else ()
    return next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None)


def _files(folder: Path) -> Iterator[str]:
    for where, folders, files in os.walk(folder):
        # Never let through, and thousands of files.
        folders[:] = [name for name in folders if name not in {".git", ".venv", ".venv-gpu"}]
        for name in files:
            yield str((Path(where) / name).relative_to(folder))
