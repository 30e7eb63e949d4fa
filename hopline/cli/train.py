"""`hopline train-entities`: the extraction model, fine-tuned on a team's own labels."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from hopline.cli.progress import say
from hopline.cli.terminal import print_json
from indexers.errors import HoplineError, WrongUsage

#: tools/train_entities, as the wheel and as a checkout know it.
_PACKAGES = ("hopline_training", "tools.train_entities")


Labelled = Annotated[
    Path, typer.Argument(metavar="LABELLED.jsonl", help="Labelled texts, one JSON object a line.")
]
Base = Annotated[
    Path | None,
    typer.Option("--base", help="Folder of the GLiNER model to start from; else the shipped one."),
]
Out = Annotated[Path | None, typer.Option("--out", help="New folder for the model.")]
Check = Annotated[bool, typer.Option("--check", help="Only read and count the labelled texts.")]
Labels = Annotated[
    str | None,
    typer.Option("--labels", help="Labels to train, with commas between; else all of the file."),
]
Test = Annotated[Path | None, typer.Option("--test", help="Labelled texts to examine the model by.")]
HeldOut = Annotated[
    float,
    typer.Option("--held-out", min=0, max=0.9, help="Without --test: share of the texts kept for that."),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="How often every text is learnt.")]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Windows of one step.")]
LearningRate = Annotated[float, typer.Option("--learning-rate", min=1e-7, help="Of the encoder.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Threads = Annotated[int, typer.Option("--threads", min=1, help="On CPU.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the order of the texts.")]
AsJson = Annotated[bool, typer.Option("--json", help="The report as JSON.")]


def register(app: typer.Typer) -> None:
    app.command("train-entities")(train_entities_command)


def train_entities_command(  # noqa: PLR0913 - the options of the command
    labelled: Labelled,
    *,
    base: Base = None,
    out: Out = None,
    check: Check = False,
    labels: Labels = None,
    test: Test = None,
    held_out: HeldOut = 0.1,
    epochs: Epochs = 3,
    batch: Batch = 8,
    learning_rate: LearningRate = 3e-5,
    device: Device = "auto",
    threads: Threads = 1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fine-tune the extraction model on your own labels.

    Needs the extra `gpu` (but --check doesn't). Writes torch weights and int8 ONNX into one folder for
    HOPLINE_EXTRACTOR__MODEL, and examines the model before and after.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise typer.BadParameter("--device is auto, cpu or cuda")
    run = _part("run")
    names = tuple(name.strip() for name in (labels or "").split(",") if name.strip())
    material = run.read_material(run.Wish(labelled=labelled, test=test, held_out=held_out, labels=names))
    if check:
        report = material.as_dict()
    elif out is None:
        raise WrongUsage("give --out, a new folder for the model (or --check)")
    else:
        plan = _part("training").Plan(
            epochs=epochs, batch=batch, learning_rate=learning_rate, device=device, threads=threads, seed=seed
        )
        report = _fine_tune(material, plan, base=base, out=out)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _fine_tune(material: Any, plan: Any, *, base: Path | None, out: Path) -> Any:
    from indexers.extractors.factory import default_model_dir

    start = base or default_model_dir()
    return _part("run").fine_tune(material, base=start, out=out, plan=plan, tell=_tell, say=_say)


def _part(name: str) -> Any:
    for package in _PACKAGES:
        if find_spec(package.partition(".")[0]) is not None and find_spec(package) is not None:
            return import_module(f"{package}.{name}")
    raise HoplineError("the training tool is not installed: install hopline again, or run this in a checkout")


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _tell(step: Any) -> None:
    if step.step == step.steps or step.step % 10 == 0:
        _say(f"epoch {step.epoch}, step {step.step} of {step.steps}, loss {step.loss:.3f}")


def _show(report: dict[str, Any]) -> None:
    texts = report["texts"]
    say(f"{texts['learn']} texts to learn from, {texts['test']} to examine by")
    for label, number in report["entities"].items():
        say(f"    {number:6}  {label}")
    if report["left_out"]:
        say(f"{report['left_out']} entities of other labels left out")
    if "out" not in report:
        return
    if report["too_wide"]:
        say(f"{report['too_wide']} entities have more words than the model's spans and were not learnt")
    for when in ("before", "after"):
        whole = report[when]["all"]
        if whole["labelled"]:
            say(f"{when}: F1 {whole['f1']}, precision {whole['precision']}, recall {whole['recall']}")
    say(f"written: {report['out']}  (HOPLINE_EXTRACTOR__MODEL={report['out']})")
