"""From labelled texts to a model that the agent can load."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from indexers.errors import WrongUsage

from .examine import examine
from .examples import MAX_LABELS, make_examples, split_held_out
from .labelled import LabelledData, read_labelled
from .metrics import Score
from .training import Plan, Step, check_base, has_torch_weights, libraries, load_model, quiet, train


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line asks for. `test`: texts to examine by; None holds out a share of the labelled ones."""

    labelled: Path
    test: Path | None
    held_out: float
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    learn: LabelledData
    test: LabelledData

    def as_dict(self) -> dict[str, Any]:
        return {
            "texts": {"learn": len(self.learn.texts), "test": len(self.test.texts)},
            "entities": dict(self.learn.counts),
            "left_out": self.learn.left_out,
        }


def read_material(wish: Wish) -> Material:
    """WrongUsage says what is wrong in which line of which file."""
    data = _read(wish.labelled, wish.labels)
    if wish.test is not None:
        return Material(learn=data, test=_read(wish.test, wish.labels))
    learn, test = split_held_out(data, wish.held_out)
    if not any(text.entities for text in learn.texts):
        raise WrongUsage("nothing is left to learn from: give more texts, or a smaller --held-out")
    return Material(learn=learn, test=test)


def check_out(out: Path) -> None:
    if out.exists():
        raise WrongUsage(f"--out: {out} exists; a model is written into a new folder")


def fine_tune(
    material: Material,
    *,
    base: Path,
    out: Path,
    plan: Plan,
    tell: Callable[[Step], None],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Trains, writes `out`, examines before and after; gives what the command reports."""
    check_base(base)
    check_out(out)
    libraries()
    quiet()
    with TemporaryDirectory(prefix="hopline-train-") as folder:
        start = _torch_checkpoint(base, Path(folder), say)
        before = _examined(start, material.test, "torch", plan, say)
        width = int(json.loads((start / "gliner_config.json").read_bytes())["max_width"])
        made = make_examples(material.learn, max_width=width)
        say(f"training on {len(made.examples)} windows of {len(material.learn.texts)} texts")
        model = load_model(start, plan.device)
        train(model, made.examples, plan, tell)
        say("writing the model: torch weights and int8 ONNX")
        _export(model, start, out, material.learn)
    return {
        **material.as_dict(),
        "windows": len(made.examples),
        "too_wide": made.too_wide,
        "out": str(out),
        "before": _report(before),
        "after": _report(_examined(out, material.test, "onnx", plan, say)),
    }


def _torch_checkpoint(base: Path, work: Path, say: Callable[[str], None]) -> Path:
    """`base`, or where that is int8 ONNX alone (as the shipped model) a checkpoint made of its weights."""
    if has_torch_weights(base):
        return base
    from indexers.extractors.checkpoint import write_checkpoint

    say(f"making a torch checkpoint of the int8 weights in {base}")
    write_checkpoint(base, work)
    return work


def _export(model: Any, start: Path, out: Path, learnt: LabelledData) -> None:
    from .export import export

    export(model, start, out, sorted({label for asked in learnt.asked for label in asked})[:MAX_LABELS])


def _examined(
    folder: Path, test: LabelledData, backend: str, plan: Plan, say: Callable[[str], None]
) -> Mapping[str, Score]:
    if not test.texts:
        return {}
    from indexers.extractors.factory import load_extractor
    from indexers.settings import ExtractorSettings

    say(f"examining {folder} by {len(test.texts)} texts")
    settings = ExtractorSettings.model_validate(
        {
            "backend": backend,
            "model": str(folder),
            "threads": plan.threads,
            "device": "cpu" if backend == "onnx" else plan.device,
        }
    )
    return examine(load_extractor(settings), test)


def _report(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {
        "all": sum(scores.values(), Score()).as_dict(),
        "labels": {label: score.as_dict() for label, score in scores.items()},
    }


def _read(path: Path, labels: Sequence[str]) -> LabelledData:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as exc:
        raise WrongUsage(f"{path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise WrongUsage(f"{path} isn't UTF-8 text") from exc
    try:
        return read_labelled(lines, labels=labels)
    except WrongUsage as exc:
        raise WrongUsage(f"{path}: {exc}") from exc
