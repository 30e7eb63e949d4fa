"""`hopline reindex`: another model for all chunks while the present one serves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hopline.cli.terminal import visible

if TYPE_CHECKING:
    from hopline.settings import Settings
    from streams.reindex.steps import Reindex

Backend = Annotated[
    Literal["onnx", "torch"] | None,
    typer.Option("--backend", help="Of the new model; default: that of the settings."),
]
Precision = Annotated[
    Literal["fp32", "fp16", "bf16"] | None, typer.Option("--precision", help="Of the new model, torch only.")
]


def register(app: typer.Typer) -> None:
    app.command()(reindex)


def reindex(  # noqa: PLR0913 - one parameter an option
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="MODEL", help="Fill a new generation with this model: folder or hub id."
        ),
    ] = None,
    backend: Backend = None,
    precision: Precision = None,
    compare: Annotated[
        int | None,
        typer.Option("--compare", metavar="N", min=1, help="Ask both with N titles and headings of notes."),
    ] = None,
    judged: Annotated[
        Path | None,
        typer.Option("--judged", metavar="SET", help="Ask both with the questions of a labelled set."),
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="How far it is.")] = False,
    swap: Annotated[bool, typer.Option("--swap", help="Search the new generation.")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="Search the old generation again.")] = False,
    finish: Annotated[bool, typer.Option("--finish", help="Drop the old generation.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Drop the new generation.")] = False,
    allow_missing: Annotated[
        int, typer.Option("--allow-missing", metavar="N", min=0, help="With --swap: so many may be left out.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Embed all anew with another model while the present one serves; then compare, swap, go back or finish.

    One step a call. Each may be repeated, after a kill too. The second group of embed workers, `hopline agent embed
    --reindex`, must run from --to until --finish; the local stack starts it by itself.
    """
    from hopline.settings import load_settings
    from indexers.errors import WrongUsage
    from streams.logs import quiet_logging

    steps = {
        "to": to is not None,
        "compare": compare is not None or judged is not None,
        "status": status,
        "swap": swap,
        "rollback": rollback,
        "finish": finish,
        "abort": abort,
    }
    chosen = [name for name, given in steps.items() if given]
    if len(chosen) != 1:
        raise WrongUsage(
            "give one of --to, --compare or --judged, --status, --swap, --rollback, --finish, --abort"
        )
    settings = load_settings()
    quiet_logging()
    changes: dict[str, Any] = {"model": to, "backend": backend, "precision": precision}
    target = {name: value for name, value in changes.items() if value is not None}
    step = chosen[0]
    options: dict[str, Any] = {"target": target, "count": compare, "judged": judged, "allow": allow_missing}
    answer = asyncio.run(_step(settings, step, options))
    typer.echo(json.dumps(answer, ensure_ascii=False) if as_json else visible(_as_text(step, answer)))
    raise typer.Exit(0 if answer.get("complete", True) else 1)


async def _step(settings: Settings, step: str, options: dict[str, Any]) -> dict[str, Any]:
    from hopline.cli.agents import agent_config
    from streams.reindex.steps import open_reindex

    config = agent_config(settings, settings.embed)
    async with open_reindex(config, lambda line: typer.echo(line, err=True)) as work:
        match step:
            case "to":
                return await _to(settings, work, options["target"])
            case "compare":
                return await _compared(work, options["count"], options["judged"])
            case "status":
                return await work.status()
            case "swap":
                changed = await work.swap(allow_missing=options["allow"])
            case "rollback":
                changed = await work.rollback()
            case "finish":
                changed = await work.finish()
            case _:
                changed = await work.abort()
        return {"changed": changed}


async def _to(settings: Settings, work: Reindex, target: dict[str, Any]) -> dict[str, Any]:
    from indexers.settings import EmbedderSettings

    generation = await work.begin(EmbedderSettings(**(settings.embedder.model_dump() | target)))
    report = await work.fill()
    return {
        "generation": generation.number,
        "documents": report.documents,
        "complete": not report.embedded and not report.refused and not report.unread,
        "unread": report.unread,
        "refused": report.refused,
    }


async def _compared(work: Reindex, count: int | None, judged: Path | None) -> dict[str, Any]:
    from hopline.evaluation.sets import read_set
    from streams.reindex.comparing import compared_sides

    questions = None if judged is None else await asyncio.to_thread(read_set, judged)
    gold = None if questions is None else {q.text: questions.gold[q.id] for q in questions.questions}
    return await compared_sides(work, count=count or 0, gold=gold)


def _as_text(step: str, answer: dict[str, Any]) -> str:
    if step == "to":
        lines = [f"generation {answer['generation']}: {answer['documents']} documents"]
        lines += [f"  left out: {line}" for line in [*answer["unread"], *answer["refused"]]]
        lines.append(
            "next: hopline reindex --compare 50, then --swap" if answer["complete"] else "run it again"
        )
        return "\n".join(lines)
    if step == "status":
        return "\n".join([f"state: {answer['state']}", *map(_line, answer["generations"])])
    if step == "compare":
        return "\n".join(f"{name}: {_number(value)}" for name, value in answer.items())
    return "done" if answer["changed"] else "nothing to do: it is so already"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _line(one: dict[str, Any]) -> str:
    parts = ["searched"] if one["searched"] else []
    parts += [one["model_id"] or one["space"], f"{one['chunks']} chunks"]
    if one["group"] is not None:
        parts.append(f"{one['waiting_records']} records wait for {one['workers']} workers of {one['group']}")
    return f"  generation {one['generation']}: {', '.join(parts)}"
