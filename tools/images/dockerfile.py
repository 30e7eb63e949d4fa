"""A Dockerfile as values: stages, each with its steps in order. Only what ours use; anything else is an error."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: Those that a rehearsal knows how to carry out or to note.
KNOWN = frozenset(
    "ARG CMD COPY ENTRYPOINT ENV EXPOSE HEALTHCHECK LABEL RUN STOPSIGNAL USER WORKDIR".split()  # noqa: SIM905 - reads better
)
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class Step:
    instruction: str
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """Of the exec form (`["a", "b"]`) or of a line of words."""
        if self.text.startswith("["):
            return tuple(json.loads(self.text))
        return tuple(shlex.split(self.text))

    @property
    def pairs(self) -> dict[str, str]:
        """Of ENV, LABEL and ARG: name → value."""
        return {name: value for name, _, value in (word.partition("=") for word in self.words)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    name: str
    base: str
    steps: list[Step] = field(default_factory=list)

    def last(self, instruction: str) -> Step | None:
        return next((step for step in reversed(self.steps) if step.instruction == instruction), None)


def parse(text: str) -> dict[str, Stage]:
    """Name → stage, in the file's order. Raises ValueError for an instruction that isn't known."""
    stages: dict[str, Stage] = {}
    arguments: dict[str, str] = {}
    current: Stage | None = None
    for step in _steps(text):
        if step.instruction == "FROM":
            base, _, name = filled(step.text, arguments).partition(" AS ")
            current = Stage(name=name or str(len(stages)), base=base)
            stages[current.name] = current
        elif current is None and step.instruction == "ARG":
            arguments |= step.pairs
        elif current is None or step.instruction not in KNOWN:
            raise ValueError(f"{step.instruction} is nothing that is known here: {step.text}")
        else:
            current.steps.append(step)
    return stages


def whole(stages: Mapping[str, Stage], target: str) -> Stage:
    """A stage with the steps of those that it stands on before its own; its base is an image's name."""
    stage = stages[target]
    below = stages.get(stage.base)
    if below is None:
        return stage
    under = whole(stages, below.name)
    return Stage(name=target, base=under.base, steps=[*under.steps, *stage.steps])


def filled(text: str, values: Mapping[str, str]) -> str:
    """With `$name` and `${name}` replaced; unknown ones are empty, as in a Dockerfile."""
    return _VARIABLE.sub(lambda match: values.get(match[1] or match[2], ""), text)


def kept(ignore: Path, files: Iterator[str]) -> list[str]:
    """Those of the files (relative) that a .dockerignore lets through: the last rule that fits decides."""
    lines = [line.strip() for line in ignore.read_text().splitlines()]
    rules = [
        (not line.startswith("!"), _pattern(line.removeprefix("!")))
        for line in lines
        if line and not line.startswith("#")
    ]
    return [
        file
        for file in files
        if not [out for out, pattern in [(False, re.compile("")), *rules] if pattern.match(file)][-1]
    ]


def _pattern(rule: str) -> re.Pattern[str]:
    """Fits the named file, and everything below a named folder."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    escaped = re.sub(
        r"\*\*/|\*\*|\*|\?|[^*?]+", lambda match: parts.get(match[0]) or re.escape(match[0]), rule
    )
    return re.compile(f"{escaped}(?:/.*)?$")


def _steps(text: str) -> Iterator[Step]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield Step(instruction, " ".join(rest.split()) if instruction != "RUN" else rest.strip())
