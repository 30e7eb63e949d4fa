"""The command `hopline`: the commands, and what every error becomes.

Exit codes: 0 done · 1 failed, or something is wrong that was asked about · 2 wrong usage or settings ·
3 not running (`hopline status`), removals held (`hopline rescan`) · 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Annotated

import typer

from indexers.errors import ConfigurationError, HoplineError

#: In the order of `hopline --help`.
COMMAND_MODULES = (
    "hopline.cli.stack",
    "hopline.cli.search",
    "hopline.cli.read",
    "hopline.cli.links",
    "hopline.cli.trust",
    "hopline.cli.watch",
    "hopline.cli.agents",
    "hopline.cli.api",
    "hopline.cli.dlq",
    "hopline.cli.keys",
    "hopline.cli.settings",
    "hopline.cli.demo",
)


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
    for name in COMMAND_MODULES:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).register(app)
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
