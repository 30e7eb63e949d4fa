"""`hopline eval`: how well the retrieval finds what it should, measured on a labelled set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopline.cli.progress import say

if TYPE_CHECKING:
    from hopline.evaluation.run import Wish
    from hopline.local.maven import Say
    from hopline.settings import Settings


#: Which questions of which set.
LabelledSet = Annotated[
    Path | None,
    typer.Argument(metavar="SET", help="Folder with corpus.jsonl (or vault/), queries.jsonl and qrels.tsv."),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="So many questions, spread over the file.")]
Queries = Annotated[
    Path | None, typer.Option("--queries", help="Questions of another file; relative to SET or to here.")
]
Qrels = Annotated[Path | None, typer.Option("--qrels", help="Judgements of another file.")]
#: What is measured.
Configs = Annotated[
    str | None, typer.Option("--configs", help="Configurations, with commas between; default: all.")
]
Budget = Annotated[
    int, typer.Option("--budget", min=0, help="Tokens of the context asked for beside; 0: none is asked for.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the confidence intervals.")]
#: What becomes of the index.
Keep = Annotated[bool, typer.Option("--keep", help="Leave indices and vault for --reuse.")]
Reuse = Annotated[
    str | None, typer.Option("--reuse", metavar="PREFIX", help="Ask what --keep left; nothing is indexed.")
]
Drop = Annotated[
    str | None, typer.Option("--drop", metavar="PREFIX", help="Remove what --keep left, and leave.")
]
#: How it is told.
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for the report (JSON), a plot (SVG) and what each configuration found."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="The report as JSON; progress goes to stderr.")]


def register(app: typer.Typer) -> None:
    app.command("eval")(eval_command)


def eval_command(  # noqa: PLR0913 - one parameter an option
    labelled: LabelledSet = None,
    *,
    configs: Configs = None,
    limit: Limit = None,
    queries: Queries = None,
    qrels: Qrels = None,
    budget: Budget = 2_000,
    seed: Seed = 0,
    keep: Keep = False,
    reuse: Reuse = None,
    drop: Drop = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Measure retrieval on a labelled set: recall, precision, MRR, nDCG, latency, context, by configuration.

    Indexes the set with agents, index and tenant of its own, on the engines of the settings or of a running
    `hopline up`, else on engines started for it; asks every question through the HTTP API; removes it all.
    """
    from hopline.evaluation.run import Wish

    tell = _aside if as_json else say
    if drop is not None:
        _drop(drop, tell)
        return
    folder = _required(labelled)
    wish = Wish(
        folder=folder,
        queries=_of_set(folder, queries),
        qrels=_of_set(folder, qrels),
        configs=configs,
        limit=limit,
        keep=keep,
        reuse=reuse,
        context_budget=budget,
        seed=seed,
    )
    _evaluate(wish, tell, out=out, as_json=as_json)


def _required(labelled: Path | None) -> Path:
    from indexers.errors import WrongUsage

    if labelled is None:
        raise WrongUsage("name a SET, a folder with corpus.jsonl (or vault/), queries.jsonl and qrels.tsv")
    return labelled


def _drop(prefix: str, tell: Say) -> None:
    from hopline.evaluation.run import drop_kept

    drop_kept(_settings(), prefix, tell)
    tell(f"{prefix} is removed")


def _evaluate(wish: Wish, tell: Say, *, out: Path | None, as_json: bool) -> None:
    from hopline.cli.terminal import print_json
    from hopline.evaluation.files import write_report
    from hopline.evaluation.run import evaluate
    from hopline.evaluation.table import as_text

    found = evaluate(_settings(), wish, tell)
    if out is not None:
        tell(f"written to {out}: {len(write_report(found, out))} files")
    if as_json:
        print_json(found.report)
    else:
        say()
        say(as_text(found.report))


def _settings() -> Settings:
    """With only what matters in the logs: the report goes to the same terminal."""
    from hopline.settings import load_settings
    from streams.logs import quiet_logging

    settings = load_settings()
    quiet_logging()
    return settings


def _of_set(labelled: Path, given: Path | None) -> Path | None:
    """As named from here, else as a file of the set."""
    if given is None or given.is_file():
        return given
    return labelled / given


def _aside(text: str = "") -> None:
    typer.echo(text, err=True)
