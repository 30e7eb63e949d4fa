"""`hopline demo`: from nothing to explained hits on the example vault."""

from __future__ import annotations

from typing import Annotated

import typer

#: What it shows, the query, and a note that must be among the hits.
SEARCHES = (
    (
        "A question in plain English",
        "what happened when payouts stopped at night",
        "incidents/INC-2047.md",
    ),
    ("An exact code", "ORA-01555", "runbooks/ORA-01555 snapshot too old.md"),
    ("Korean", "스캐너가 응답하지 않을 때 절차", "한국 팀/오프라인 모드 운영.md"),
)


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    *,
    down: Annotated[bool, typer.Option("--down", help="Stop a running demo and leave.")] = False,
) -> None:
    """Start Hopline on the example vault with data of its own, and search it three times.

    It stays running for you to try; a demo that fails stops what it had started.
    """
    from hopline.local import demo as steps

    if down:
        typer.echo("the demo is stopped" if steps.stop_demo(typer.echo) else "no demo is running")
        return
    try:
        _run()
    except BaseException:
        steps.stop_demo(typer.echo)
        raise


def _run() -> None:
    from hopline.local import demo as steps
    from indexers.errors import HoplineError

    steps.begin_anew(typer.echo)
    commands = steps.DemoCommands.on_demo()
    _title("Starting Hopline on examples/vault")
    commands.show("up")
    _title("Indexing")
    files = steps.wait_searchable(commands, typer.echo)
    typer.echo(f"  {files} notes are searchable")
    for what, query, expected in SEARCHES:
        _title(f'{what}: hopline search "{query}"')
        found = [hit["path"] for hit in commands.answer("search", query, "--limit", "5")["hits"]]
        if expected not in found:
            raise HoplineError(f"{expected} was not found for {query!r}, but {found}")
        commands.show("search", query, "--limit", "3")
    _title("Try next")
    typer.echo(
        f"  export HOPLINE_CONFIG={steps.config_file()}\n"
        f"  source .venv/bin/activate\n"
        f'  hopline search "who is on call for payouts"        # any question\n'
        f"  hopline search INC-2041 --explain                  # every factor of the score\n"
        f"  hopline status                                     # processes, lag, the watcher\n"
        f"Edit a note in {steps.example_vault()}: it is found within a second or two.\n"
        f"On your own notes: unset HOPLINE_CONFIG; hopline up --vault ~/notes\n"
        f"Stop the demo: make demo-down"
    )


def _title(text: str) -> None:
    typer.echo()
    typer.secho(f"== {text}", bold=True)
