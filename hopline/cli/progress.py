"""What a long command says while it works: to a terminal, a pipe or a reader that has gone."""

from __future__ import annotations

import os
import sys

import typer

from hopline.cli.terminal import visible


def say(text: str = "", *, bold: bool = False) -> None:
    """One line. Where nobody reads any more (`hopline up | head`), the command goes on and says nothing."""
    try:
        typer.secho(visible(text), bold=bold)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
