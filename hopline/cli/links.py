"""`hopline links`, `hopline backlinks`."""

from __future__ import annotations

from typing import Annotated

import typer

DocumentArgument = Annotated[str, typer.Argument(help="Id of a document, or its path in a configured vault.")]
JsonOption = Annotated[bool, typer.Option("--json", help="All links as one JSON object.")]


def register(app: typer.Typer) -> None:
    app.command("links")(links_command)
    app.command("backlinks")(backlinks_command)


def links_command(document: DocumentArgument, *, as_json: JsonOption = False) -> None:
    """List where a document points: each target as written, what it resolves to, and the text around it."""
    from rich.text import Text

    from hopline.cli.connection import connected, resolve
    from hopline.cli.terminal import console, print_json, print_place, visible

    with connected() as (client, settings):
        links = list(client.links_all(resolve(client, settings, document)))
    if as_json:
        print_json({"links": links})
        return
    out = console()
    if not links:
        out.print("No links.")
    for link in links:
        line = Text(visible(link.target), style="bold")
        line.append(f"  ({link.link_type})", style="dim")
        if link.to is None:
            line.append("  no such document yet", style="yellow")
        else:
            line.append(f"  -> {visible(link.to.path)}", style="cyan")
        if link.ambiguous:
            line.append("  ambiguous, nearest taken", style="yellow")
        out.print(line)
        for place in link.occurrences:
            print_place(out, place)


def backlinks_command(document: DocumentArgument, *, as_json: JsonOption = False) -> None:
    """List what points at a document, with the text around each link."""
    from rich.text import Text

    from hopline.cli.connection import connected, resolve
    from hopline.cli.terminal import console, print_json, print_place, visible

    with connected() as (client, settings):
        links = list(client.backlinks_all(resolve(client, settings, document)))
    if as_json:
        print_json({"links": links})
        return
    out = console()
    if not links:
        out.print("No backlinks.")
    for link in links:
        line = Text(visible(link.from_.title), style="bold")
        line.append(f"  {visible(link.from_.path)}", style="cyan")
        line.append(f"  ({link.link_type})", style="dim")
        out.print(line)
        for place in link.occurrences:
            print_place(out, place)
