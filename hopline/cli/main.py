"""The command `hopline`: the commands, and what every error becomes.

Exit codes: 0 done · 1 failed, or something is wrong that was asked about · 2 wrong usage or settings ·
3 not running (`hopline status`), removals held (`hopline rescan`) · 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hopline.cli import agents, api, demo, dlq, keys, links, read, search, settings, stack, trust, watch
from indexers.errors import ConfigurationError, HoplineError

#: In the order of `hopline --help`.
COMMANDS = (stack, search, read, links, trust, watch, agents, api, dlq, keys, settings, demo)


def build_app() -> typer.Typer:
    """Modules import what is heavy inside their commands, so that `--help` stays fast."""
    app = typer.Typer(
        name="hopline",
        help="The memory of agent fleets: Markdown vaults, streamed into a searchable graph.",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for module in COMMANDS:
        module.register(app)
    return app


def main() -> None:
    try:
        build_app()(prog_name="hopline")
    except HoplineError as exc:
        print(f"hopline: {exc}", file=sys.stderr)  # noqa: T201 - the command's own error line
        sys.exit(2 if isinstance(exc, ConfigurationError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if version:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as installed

        try:
            typer.echo(f"hopline {installed('hopline')}")
        except PackageNotFoundError:
            typer.echo("hopline (not installed; run from a checkout)")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
