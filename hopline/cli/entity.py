"""`hopline entity …`: names that the notes speak of, where, and how to mend what was joined wrongly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from indexers.errors import HoplineError, WrongUsage

if TYPE_CHECKING:
    from rich.console import Console

    from hopline.calls import Call
    from hopline.client import HoplineClient
    from hopline.entity_answers import Accepted, EntityLine

AsJson = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
Which = Annotated[str, typer.Argument(metavar="ENTITY", help="Its id, or its name where only one has it.")]
Label = Annotated[str | None, typer.Option("--label", help="Only of this label: person, team, service, …")]
Owner = Annotated[str | None, typer.Option("--namespace", help="shared, team:<team> or agent:<agent>.")]
Why = Annotated[str | None, typer.Option("--reason", help="Why; kept with the command.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=200, help="Most rows shown.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Until the link agent has carried it out.")]
#: The link agent takes a batch in a second or two.
WAIT_SECONDS = 30.0

app = typer.Typer(help="Entities: who and what the notes speak of.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="entity")


@app.command("list")
def list_command(
    words: Annotated[
        list[str] | None, typer.Argument(help="Words of a name; none: most mentioned first.")
    ] = None,
    *,
    label: Label = None,
    namespace: Owner = None,
    blocked: Annotated[bool, typer.Option("--blocked", help="Those that were blocked.")] = False,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """Find entities by name, or list those with most mentions."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import console, print_json

    asked = " ".join(words or ()) or None
    with connected() as (client, _):
        page = client.call(
            calls.entities(asked, label=label, namespace=namespace, blocked=blocked, page_size=limit)
        )
    if as_json:
        print_json(page)
        return
    out = console()
    for line in page.entities:
        _print_line(out, line)
    if not page.entities:
        out.print("No entities." if asked is None else "No entity has such a name.")


@app.command("show")
def show_command(entity: Which, *, label: Label = None, as_json: AsJson = False) -> None:
    """Show an entity's names, and its history if curators had a word on it."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import console, print_json, visible

    with connected() as (client, _):
        entity_id = resolve_entity(client, entity, label)
        found, past = client.call(calls.entity(entity_id)), client.call(calls.history(entity_id))
    if as_json:
        print_json({"entity": found, "history": past.history})
        return
    out = console()
    out.print(f"{visible(found.name)}  ({found.label}, {found.namespace})", style="bold", markup=False)
    out.print(f"  {found.entity_id}  {_count(found.mention_count)}{'  blocked' if found.blocked else ''}")
    for alias in found.aliases:
        out.print(f"  also {visible(alias.name)}  {alias.mentions}  {alias.name_id}", markup=False)
    for entry in past.history:
        why = f": {visible(entry.reason)}" if entry.reason else ""
        what = visible(" / ".join(entry.names))
        out.print(f"  {entry.at}  {entry.by}  {entry.kind}  {what}{why}  {entry.event_id}", markup=False)


@app.command("mentions")
def mentions_command(
    entity: Which, *, label: Label = None, limit: Limit = 20, as_json: AsJson = False
) -> None:
    """List the documents that name an entity, each with its sentence, the most certain first."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import console, print_json, visible

    with connected() as (client, _):
        page = client.call(calls.mentions(resolve_entity(client, entity, label), page_size=limit))
    if as_json:
        print_json(page)
        return
    out = console()
    for mention in page.mentions:
        head = f"{visible(mention.document.title)}  {visible(mention.document.path)}"
        out.print(f"{head}  {mention.weight:.2f} {mention.source}", style="cyan", markup=False)
        out.print(f"    {visible(' '.join(mention.sentence.split()))}", markup=False)
    if not page.mentions:
        out.print("No document mentions it.")


@app.command("in")
def in_command(
    document: Annotated[str, typer.Argument(help="Id of a document, or its path in a configured vault.")],
    *,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List what a document mentions."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected, resolve
    from hopline.cli.terminal import console, print_json, visible

    with connected() as (client, settings):
        page = client.call(calls.mentioned_in(resolve(client, settings, document), page_size=limit))
    if as_json:
        print_json(page)
        return
    out = console()
    for mention in page.mentions:
        _print_line(out, mention.entity)
        out.print(f"    {visible(' '.join(mention.sentence.split()))}", style="dim", markup=False)
    if not page.mentions:
        out.print("It mentions nothing that is known, or isn't extracted yet.")


@app.command("relations")
def relations_command(
    entity: Which, *, label: Label = None, limit: Limit = 50, as_json: AsJson = False
) -> None:
    """List what was written of an entity and others, each with its quote."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import console, print_json, visible

    with connected() as (client, _):
        page = client.call(calls.relations(resolve_entity(client, entity, label), page_size=limit))
    if as_json:
        print_json(page)
        return
    out = console()
    for one in page.relations:
        out.print(
            visible(f"{one.subject.name}  {one.relation_type}  {one.object.name}"), style="bold", markup=False
        )
        out.print(visible(f"    “{' '.join(one.quote.split())}”  {one.document.path}"), markup=False)
    if not page.relations:
        out.print("No relations.")


@app.command("merge")
def merge_command(
    entity: Which,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The entity that is the same.")],
    *,
    label: Label = None,
    reason: Why = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Join two entities that are one. `unmerge` takes it back exactly."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        ids = [resolve_entity(client, name, label) for name in (entity, other)]
        _carry_out(client, calls.merge(*ids, reason=reason), wait=wait, as_json=as_json)


@app.command("unmerge")
def unmerge_command(
    entity: Which,
    *,
    merge: Annotated[
        str | None, typer.Option("--merge", help="Event id of the merge (`entity show`).")
    ] = None,
    alias: Annotated[str | None, typer.Option("--alias", help="Id of the alias that leaves.")] = None,
    label: Label = None,
    reason: Why = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Take a merge back, or let an alias leave that was joined by likeness."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    if (merge is None) == (alias is None):
        msg = "give --merge EVENT_ID or --alias NAME_ID; `hopline entity show` names both"
        raise WrongUsage(msg)
    with connected() as (client, _):
        entity_id = resolve_entity(client, entity, label)
        call = calls.unmerge(entity_id, merge_event_id=merge, name_id=alias, reason=reason)
        _carry_out(client, call, wait=wait, as_json=as_json)


@app.command("rename")
def rename_command(
    entity: Which,
    name: Annotated[str, typer.Argument(help="How people shall read it.")],
    *,
    label: Label = None,
    reason: Why = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Choose the name that is shown."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        call = calls.rename(resolve_entity(client, entity, label), name, reason=reason)
        _carry_out(client, call, wait=wait, as_json=as_json)


@app.command("block")
def block_command(
    entity: Which, *, label: Label = None, reason: Why = None, wait: Wait = True, as_json: AsJson = False
) -> None:
    """Say that a name is noise: it is listed and walked no more."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        call = calls.block(resolve_entity(client, entity, label), reason=reason)
        _carry_out(client, call, wait=wait, as_json=as_json)


@app.command("unblock")
def unblock_command(
    entity: Which, *, label: Label = None, reason: Why = None, wait: Wait = True, as_json: AsJson = False
) -> None:
    """Take a block back."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        call = calls.unblock(resolve_entity(client, entity, label, blocked=True), reason=reason)
        _carry_out(client, call, wait=wait, as_json=as_json)


@app.command("proposals")
def proposals_command(
    *, label: Label = None, namespace: Owner = None, limit: Limit = 50, as_json: AsJson = False
) -> None:
    """List pairs of names that may be one entity, the most alike first."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import console, print_json, visible

    with connected() as (client, _):
        page = client.call(calls.proposals(label=label, namespace=namespace, page_size=limit))
    if as_json:
        print_json(page)
        return
    out = console()
    for one in page.proposals:
        pair = visible(
            f"{one.entity.name} ({one.entity.mention_count}) / {one.other.name} ({one.other.mention_count})"
        )
        out.print(f"{one.proposal_id}  {one.similarity:.2f} {one.reason}  {one.label}  {pair}", markup=False)
    if not page.proposals:
        out.print("No proposals.")


@app.command("accept")
def accept_command(
    proposal: Annotated[str, typer.Argument(help="Id of a proposal (`entity proposals`).")],
    *,
    reason: Why = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Say that the two names of a proposal are one entity."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        _carry_out(client, calls.decide(proposal, "accept", reason=reason), wait=wait, as_json=as_json)


@app.command("reject")
def reject_command(
    proposal: Annotated[str, typer.Argument(help="Id of a proposal (`entity proposals`).")],
    *,
    reason: Why = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Say that the two names of a proposal are two: they are neither proposed nor joined again."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        _carry_out(client, calls.decide(proposal, "reject", reason=reason), wait=wait, as_json=as_json)


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


def _carry_out(client: HoplineClient, call: Call[Accepted], *, wait: bool, as_json: bool) -> None:
    from hopline import entity_calls as calls
    from hopline.cli.terminal import print_json

    event_id = client.call(call).event_id
    state, deadline = "accepted", time.monotonic() + WAIT_SECONDS
    while wait and state != "applied" and time.monotonic() < deadline:
        time.sleep(0.2)
        state = client.call(calls.command_state(event_id)).state
    if as_json:
        print_json({"event_id": event_id, "state": state})
    elif state == "applied":
        typer.echo(f"Done ({event_id}).")
    else:
        typer.echo(f"Accepted ({event_id}); the link agent carries it out.")
    if wait and state != "applied":
        msg = f"not carried out within {WAIT_SECONDS:.0f} s, but it will be: does the link agent run? `hopline status`"
        raise HoplineError(msg)


def _print_line(out: Console, line: EntityLine) -> None:
    from rich.text import Text

    from hopline.cli.terminal import visible

    text = Text(visible(line.name), style="bold")
    text.append(f"  {line.label}", style="cyan")
    text.append(f"  {_count(line.mention_count)}", style="dim")
    if line.namespace != "shared":
        text.append(f"  {line.namespace}", style="dim")
    if line.matched:
        text.append(f"  also {visible(line.matched)}", style="dim")
    text.append(f"  {line.entity_id}", style="dim")
    out.print(text)


def _count(documents: int) -> str:
    return f"{documents} document{'' if documents == 1 else 's'}"
