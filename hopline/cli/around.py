"""`hopline related`, `hopline graph`: what stands around a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hopline.cli.links import DocumentArgument

if TYPE_CHECKING:
    from hopline.memory_answers import Graph, GraphNode, Relative

AsJson = Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")]


def register(app: typer.Typer) -> None:
    app.command("related")(related_command)
    app.command("graph")(graph_command)


def related_command(
    document: DocumentArgument,
    *,
    number: Annotated[
        int | None, typer.Option("-n", "--number", min=1, max=50, help="Most documents; default 20.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what is related to a document, the closest first, each with its reasons."""
    from hopline.cli.connection import connected, resolve
    from hopline.cli.terminal import print_json

    with connected() as (client, settings):
        found = client.related(resolve(client, settings, document), page_size=number)
    if as_json:
        print_json(found)
    elif found.related:
        for relative in found.related:
            _print_relative(relative)
    else:
        typer.echo("Nothing is related to it.")


def graph_command(
    document: DocumentArgument,
    *,
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, max=3, help="Edges from the document; default 1.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the documents and entities around a document, and the edges between them."""
    from hopline.cli.connection import connected, resolve
    from hopline.cli.terminal import print_json

    with connected() as (client, settings):
        found = client.graph(resolve(client, settings, document), depth=depth)
    if as_json:
        print_json(found)
    else:
        _print_graph(found)


def _print_relative(relative: Relative) -> None:
    from rich.text import Text

    from hopline.cli.terminal import console, visible

    out = console()
    line = Text(visible(relative.document.title), style="bold")
    line.append(f"  {visible(relative.document.path)}", style="cyan")
    line.append(f"  {relative.score:.2f}", style="dim")
    out.print(line)
    for reason in relative.reasons:
        out.print(Text(f"    {reason.kind}: {visible(' '.join(reason.text.split()))}", style="dim"))


def _print_graph(graph: Graph) -> None:
    from rich.text import Text

    from hopline.cli.terminal import console, visible

    out = console()
    names = {node.id: visible(node.title) for node in graph.nodes}
    for node in graph.nodes:
        line = Text(f"{node.hop}  ")
        line.append(names[node.id], style="bold")
        line.append(f"  {visible(_what(node))}", style="cyan" if node.kind == "document" else "dim")
        out.print(line)
    for edge in graph.edges:
        out.print(Text(f"   {names[edge.source]} -> {names[edge.target]}  ({edge.kind}, {edge.weight:.2f})"))
    if graph.capped:
        out.print(Text("There is more than is shown.", style="yellow"))


def _what(node: GraphNode) -> str:
    return (node.path or "") if node.kind == "document" else f"({node.label})"
