"""What `hopline search` and `hopline context` have in common: which documents are meant, and how a refusal is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from hopline.cli.closed import known_scopes, known_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hopline.calls import InvalidRequest

Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only with one of these tags.")]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        callback=known_types,
        help="Only of these types: note, memory, context, skill, session_summary.",
    ),
]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", callback=known_scopes, help="Only personal, team or shared."),
]
Under = Annotated[str | None, typer.Option("--under", help="Only paths that begin with this.")]
AsJson = Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")]

#: What the service calls a field, and what a person gave for it.
FIELDS: Final = {
    "query": "QUERY",
    "filters.tags": "--tag",
    "filters.doc_type": "--type",
    "filters.scope": "--scope",
    "filters.path_prefix": "--under",
}


def given(**filters: object) -> dict[str, object]:
    """Those of the service's filters that the caller gave a value for."""
    return {name: value for name, value in filters.items() if value}


def in_options(refused: InvalidRequest, options: Mapping[str, str]) -> str:
    """What is wrong, by the names of the command line: `options` by the service's names."""
    lines = []
    for fault in refused.problem.errors:
        name = fault.field.removeprefix("body.").rstrip("0123456789").rstrip(".")
        lines.append(f"{options.get(name, name)}: {fault.message}")
    return "\n".join(lines) or str(refused)
