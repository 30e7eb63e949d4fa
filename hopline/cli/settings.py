"""`hopline settings`: every setting with its variable, its value, its default and what it is for."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hopline.cli.terminal import visible


def register(app: typer.Typer) -> None:
    app.command("settings")(settings_command)


def settings_command(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
    as_env: Annotated[bool, typer.Option("--env", help="As lines for an environment file.")] = False,
) -> None:
    """List every setting: environment variable, value, default, description. Secrets are masked."""
    from hopline.settings import load_settings
    from hopline.settings_list import list_settings

    entries = list_settings(load_settings())
    if as_json:
        rows = [
            {
                "env": e.env,
                "value": e.value,
                "default": e.default,
                "description": e.description,
                "changed": e.changed,
            }
            for e in entries
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for entry in entries:
        if as_env:
            typer.echo(f"# {entry.description}\n{'' if entry.changed else '#'}{entry.env}={entry.value}")
        else:
            mark = "*" if entry.changed else " "
            typer.echo(visible(f"{mark} {entry.env} = {entry.value}\n      {entry.description}"))
    if not as_env:
        typer.echo("* differs from the default. A file sets the same names: [opensearch] url = …")
