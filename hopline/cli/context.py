"""`hopline context`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hopline.cli.closed import known_scopes, known_types

if TYPE_CHECKING:
    from hopline.answers import Context

#: What the service calls a field, and what a person gave for it.
_OPTIONS = {
    "query": "QUERY",
    "budget_tokens": "--budget",
    "documents_max": "--documents",
    "l1_documents_max": "--excerpts",
    "filters.tags": "--tag",
    "filters.doc_type": "--type",
    "filters.scope": "--scope",
    "filters.path_prefix": "--under",
}


def register(app: typer.Typer) -> None:
    app.command("context")(context_command)


def context_command(  # noqa: PLR0913 - one parameter an option
    query: Annotated[
        list[str], typer.Argument(help="What the context is for; several words need no quotes.")
    ],
    *,
    budget: Annotated[
        int | None, typer.Option("--budget", "-b", min=1, help="Most tokens; default: the service's setting.")
    ] = None,
    documents: Annotated[
        int | None, typer.Option("--documents", "-n", min=1, help="Most documents, a line each.")
    ] = None,
    excerpts: Annotated[
        int | None, typer.Option("--excerpts", min=0, help="How many of the best with excerpts.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only with one of these tags.")] = None,
    doc_type: Annotated[
        list[str] | None, typer.Option("--type", callback=known_types, help="Only of these types.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", callback=known_scopes, help="Only personal, team or shared."),
    ] = None,
    under: Annotated[str | None, typer.Option("--under", help="Only paths that begin with this.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")] = False,
) -> None:
    """Print what a model should read about a question, as Markdown within a budget of tokens.

    Titles, paths and one line of the best documents, and of the best few the paragraphs that matter. How many tokens
    it has stands on stderr.
    """
    from hopline.calls import InvalidRequest
    from hopline.cli.connection import connected
    from hopline.cli.search import in_options
    from hopline.cli.terminal import print_json
    from indexers.errors import WrongUsage

    filters = {"tags": tag, "doc_type": doc_type, "scope": scope, "path_prefix": under}
    with connected() as (client, _settings):
        try:
            found = client.context(
                " ".join(query),
                budget_tokens=budget,
                documents_max=documents,
                l1_documents_max=excerpts,
                filters={name: value for name, value in filters.items() if value},
            )
        except InvalidRequest as exc:
            raise WrongUsage(in_options(exc, _OPTIONS)) from exc
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: Context) -> None:
    from hopline.cli.terminal import visible

    # A terminal is protected from control characters; a pipe gets the service's text.
    text = visible(found.text) if sys.stdout.isatty() else found.text
    if text:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")
        sys.stdout.flush()
    print(_summary(found), file=sys.stderr)  # noqa: T201 - beside the context, not in it


def _summary(found: Context) -> str:
    if not found.documents:
        return "Nothing found."
    number = len(found.documents)
    shown = sum(bool(document.excerpts) for document in found.documents)
    left_out = f", {found.left_out} without room" if found.left_out else ""
    return (
        f"{found.tokens} of {found.budget_tokens} tokens ({found.tokenizer}): {number} documents, "
        f"{shown} with excerpts{left_out}"
    )
