"""`hopline context`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hopline.cli.asking import FIELDS, AsJson, Scopes, Tags, Types, Under, given, in_options

if TYPE_CHECKING:
    from hopline.answers import Context

#: What the service calls a field, and what a person gave for it.
_OPTIONS = FIELDS | {
    "budget_tokens": "--budget",
    "documents_max": "--documents",
    "l1_documents_max": "--excerpts",
}

Query = Annotated[list[str], typer.Argument(help="What the context is for; several words need no quotes.")]
Budget = Annotated[
    int | None, typer.Option("--budget", "-b", min=1, help="Most tokens; default: the service's setting.")
]
Documents = Annotated[
    int | None, typer.Option("--documents", "-n", min=1, help="Most documents, a line each.")
]
Excerpts = Annotated[
    int | None, typer.Option("--excerpts", min=0, help="How many of the best with excerpts.")
]


def register(app: typer.Typer) -> None:
    app.command("context")(context_command)


def context_command(  # noqa: PLR0913 - one parameter an option
    query: Query,
    *,
    budget: Budget = None,
    documents: Documents = None,
    excerpts: Excerpts = None,
    tag: Tags = None,
    doc_type: Types = None,
    scope: Scopes = None,
    under: Under = None,
    as_json: AsJson = False,
) -> None:
    """Print what a model should read about a question, as Markdown within a budget of tokens.

    Titles and paths of the best documents, of the best few the paragraphs that matter, and one line of each where there
    is room. How many tokens it has stands on stderr.
    """
    from hopline.calls import InvalidRequest
    from hopline.cli.connection import connected
    from hopline.cli.terminal import print_json
    from indexers.errors import WrongUsage

    with connected() as (client, _settings):
        try:
            found = client.context(
                " ".join(query),
                budget_tokens=budget,
                documents_max=documents,
                l1_documents_max=excerpts,
                filters=given(tags=tag, doc_type=doc_type, scope=scope, path_prefix=under),
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
