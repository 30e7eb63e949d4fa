"""`hopline entity …`: names that the notes speak of, where, and how to mend what was joined wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hopline.cli import curating
from hopline.cli.naming import (
    LIMIT_MAX,
    AsJson,
    Label,
    Limit,
    Owner,
    Which,
    count_of,
    print_line,
    resolve_entity,
)

if TYPE_CHECKING:
    from hopline.entity_answers import DocumentMentionPage

app = typer.Typer(help="Entities: who and what the notes speak of.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    curating.add_to(app)
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
        print_line(out, line)
    if not page.entities:
        out.print("No entities." if asked is None else "No entity has such a name.")
    elif page.next_cursor is not None:
        out.print(f"… and more; --limit shows up to {LIMIT_MAX}.", style="dim")


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
    out.print(f"  {found.entity_id}  {count_of(found.mention_count)}{'  blocked' if found.blocked else ''}")
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
    from hopline.cli.terminal import print_json

    with connected() as (client, settings):
        page = client.call(calls.mentioned_in(resolve(client, settings, document), page_size=limit))
    if as_json:
        print_json(page)
        return
    show_mentioned(page)


def show_mentioned(page: DocumentMentionPage) -> None:
    from hopline.cli.terminal import console, visible

    out = console()
    for mention in page.mentions:
        print_line(out, mention.entity, said=mention.surface)
        out.print(f"    {visible(' '.join(mention.sentence.split()))}", style="dim", markup=False)
    if not page.mentions:
        out.print(
            "It mentions nothing that is known, or isn't extracted yet. The shipped extractor reads English names.",
            soft_wrap=True,
        )


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
