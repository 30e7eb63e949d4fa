"""Entities as people name them on the command line, and as they read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from indexers.errors import HoplineError, WrongUsage

if TYPE_CHECKING:
    from rich.console import Console

    from hopline.client import HoplineClient
    from hopline.entity_answers import EntityLine

AsJson = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
Which = Annotated[str, typer.Argument(metavar="ENTITY", help="Its id, or its name where only one has it.")]
Label = Annotated[str | None, typer.Option("--label", help="Only of this label: person, team, service, …")]
Owner = Annotated[str | None, typer.Option("--namespace", help="shared, team:<team> or agent:<agent>.")]
#: The service gives no longer page.
LIMIT_MAX = 200
Limit = Annotated[int, typer.Option("--limit", min=1, max=LIMIT_MAX, help="Most rows shown.")]


def resolve_entity(
    client: HoplineClient, entity: str, label: str | None = None, *, blocked: bool = False
) -> str:
    """An id as it is; a name as the one entity that has just this name or alias."""
    from uuid import UUID

    from hopline import entity_calls as calls

    try:
        return str(UUID(entity))
    except ValueError:
        page = client.call(calls.entities(entity[:200], label=label, blocked=blocked, page_size=50))
    wanted = entity.casefold()
    named = [e for e in page.entities if wanted in (e.name.casefold(), (e.matched or "").casefold())]
    if len(named) == 1:
        return named[0].entity_id
    if not named:
        near = ", ".join(e.name for e in page.entities[:3])
        msg = f"no entity is called {entity!r}" + (f"; near it: {near}" if near else "")
        raise HoplineError(msg)
    places = "; ".join(f"{e.label} in {e.namespace}: {e.entity_id}" for e in named[:5])
    msg = f"{len(named)} entities are called {entity!r}: give the id ({places})"
    raise WrongUsage(msg)


def print_line(out: Console, line: EntityLine, *, said: str | None = None) -> None:
    """`said`: the spelling in a text, shown where it isn't the entity's name."""
    from rich.text import Text

    from hopline.cli.terminal import visible

    text = Text(visible(line.name), style="bold")
    text.append(f"  {line.label}", style="cyan")
    text.append(f"  {count_of(line.mention_count)}", style="dim")
    if line.namespace != "shared":
        text.append(f"  {line.namespace}", style="dim")
    if line.matched:
        text.append(f"  also {visible(line.matched)}", style="dim")
    if said is not None and said.casefold() != line.name.casefold():
        text.append(f"  as {visible(said)}", style="dim")
    text.append(f"  {line.entity_id}", style="dim")
    out.print(text)


def count_of(documents: int) -> str:
    return f"{documents} document{'' if documents == 1 else 's'}"
