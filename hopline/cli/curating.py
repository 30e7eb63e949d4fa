"""`hopline entity merge …`: commands of curators, and waiting for what they bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hopline.cli.naming import AsJson, Label, Which, resolve_entity
from indexers.errors import HoplineError, WrongUsage

if TYPE_CHECKING:
    from hopline.calls import Call
    from hopline.client import HoplineClient
    from hopline.entity_answers import Accepted

Why = Annotated[str | None, typer.Option("--reason", help="Why; kept with the command.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Until the link agent has carried it out.")]
ProposalId = Annotated[str, typer.Argument(metavar="PROPOSAL", help="Id of a proposal (`entity proposals`).")]
#: The link agent takes a batch in a second or two.
WAIT_SECONDS = 30.0
#: A command stands in the journal a moment before the names follow.
FOLLOW_SECONDS = 5.0
LOOK_SECONDS = 0.2


def add_to(app: typer.Typer) -> None:
    app.command("merge")(merge_command)
    app.command("unmerge")(unmerge_command)
    app.command("rename")(rename_command)
    app.command("block")(block_command)
    app.command("unblock")(unblock_command)
    app.command("accept")(accept_command)
    app.command("reject")(reject_command)


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
        _carry_out(
            client,
            calls.merge(*ids, reason=reason),
            lambda: len({client.call(calls.entity(one)).entity_id for one in ids}) == 1,
            wait=wait,
            as_json=as_json,
        )


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
        before = client.call(calls.entity(entity_id))
        _carry_out(
            client,
            calls.unmerge(entity_id, merge_event_id=merge, name_id=alias, reason=reason),
            lambda: client.call(calls.entity(entity_id)) != before,
            wait=wait,
            as_json=as_json,
        )


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
        entity_id, shown = resolve_entity(client, entity, label), " ".join(name.split())
        _carry_out(
            client,
            calls.rename(entity_id, name, reason=reason),
            lambda: client.call(calls.entity(entity_id)).name == shown,
            wait=wait,
            as_json=as_json,
        )


def block_command(
    entity: Which, *, label: Label = None, reason: Why = None, wait: Wait = True, as_json: AsJson = False
) -> None:
    """Say that a name is noise: it is listed and walked no more."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        entity_id = resolve_entity(client, entity, label)
        _carry_out(
            client,
            calls.block(entity_id, reason=reason),
            lambda: client.call(calls.entity(entity_id)).blocked,
            wait=wait,
            as_json=as_json,
        )


def unblock_command(
    entity: Which, *, label: Label = None, reason: Why = None, wait: Wait = True, as_json: AsJson = False
) -> None:
    """Take a block back."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        entity_id = resolve_entity(client, entity, label, blocked=True)
        _carry_out(
            client,
            calls.unblock(entity_id, reason=reason),
            lambda: not client.call(calls.entity(entity_id)).blocked,
            wait=wait,
            as_json=as_json,
        )


def accept_command(
    proposal: ProposalId, *, reason: Why = None, wait: Wait = True, as_json: AsJson = False
) -> None:
    """Say that the two names of a proposal are one entity."""
    _decide(proposal, "accept", reason=reason, wait=wait, as_json=as_json)


def reject_command(
    proposal: ProposalId, *, reason: Why = None, wait: Wait = True, as_json: AsJson = False
) -> None:
    """Say that the two names of a proposal are two: they are neither proposed nor joined again."""
    _decide(proposal, "reject", reason=reason, wait=wait, as_json=as_json)


def _decide(
    proposal: str, decision: Literal["accept", "reject"], *, reason: str | None, wait: bool, as_json: bool
) -> None:
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected

    with connected() as (client, _):
        _carry_out(
            client,
            calls.decide(proposal, decision, reason=reason),
            lambda: proposal not in _listed(client),
            wait=wait,
            as_json=as_json,
        )


def _listed(client: HoplineClient) -> set[str]:
    """Ids of the likeliest proposals: of one that isn't among them nothing is awaited."""
    from hopline import entity_calls as calls

    return {one.proposal_id for one in client.call(calls.proposals(page_size=200)).proposals}


def _carry_out(
    client: HoplineClient,
    call: Call[Accepted],
    follows: Callable[[], bool],
    *,
    wait: bool,
    as_json: bool,
) -> None:
    """`follows`: whether the names show what the command asks for."""
    from hopline import entity_calls as calls
    from hopline.cli.terminal import print_json

    event_id = client.call(call).event_id
    applied = wait and _within(
        WAIT_SECONDS, lambda: client.call(calls.command_state(event_id)).state == "applied"
    )
    if applied:
        _within(FOLLOW_SECONDS, lambda: _shows(follows))
    if as_json:
        print_json({"event_id": event_id, "state": "applied" if applied else "accepted"})
    elif applied:
        typer.echo(f"Done ({event_id}).")
    else:
        typer.echo(f"Accepted ({event_id}); the link agent carries it out.")
    if wait and not applied:
        msg = f"not carried out within {WAIT_SECONDS:.0f} s, but it will be: does the link agent run? `hopline status`"
        raise HoplineError(msg)


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _shows(follows: Callable[[], bool]) -> bool:
    """An entity that went meanwhile shows nothing any more."""
    from hopline.calls import NotFound

    try:
        return follows()
    except NotFound:
        return True
