"""`hopline read`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("read")(read_command)


def read_command(
    document: Annotated[str, typer.Argument(help="Id of a document, or its path in a configured vault.")],
    *,
    start: Annotated[int, typer.Option("--start", min=0, help="First character.")] = 0,
    max_chars: Annotated[
        int | None, typer.Option("--max", min=1, help="Most characters; default: all.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The document's row and this page as JSON.")
    ] = False,
) -> None:
    """Print a document's text, exactly as it stands in the vault."""
    from hopline.cli.connection import connected, resolve
    from hopline.cli.terminal import print_json, visible

    with connected() as (client, settings):
        doc_id = resolve(client, settings, document)
        if as_json:
            page = client.content(doc_id, start=start, max_chars=max_chars)
            print_json({"document": client.document(doc_id), "content": page})
            return
        left = max_chars
        for text in client.text(doc_id, start=start):
            shown = text if left is None else text[:left]
            # A terminal is protected from control characters; a pipe gets the file's own text.
            shown = visible(shown) if sys.stdout.isatty() else shown
            sys.stdout.buffer.write(shown.encode("utf-8", "surrogatepass"))
            left = None if left is None else left - len(shown)
            if left == 0:
                break
        sys.stdout.flush()
