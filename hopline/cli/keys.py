"""`hopline keys`: keys made, listed, rotated and revoked; and the local ones that `hopline up` made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hopline.admin_answers import Key, NewKey
    from hopline.client import HoplineClient

KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="Id of the key, as `keys list` shows it.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Tenant; for operators.")]
AsJson = Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")]

app = typer.Typer(
    help="API keys. Asked with HOPLINE_API_KEY, else with the local operator's key.", no_args_is_help=True
)


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="keys")


@app.command("show")
def show(
    *,
    operator: Annotated[
        bool, typer.Option("--operator", help="The operator's key, which manages tenants and keys.")
    ] = False,
) -> None:
    """Print the key that `hopline up` made for the local user, for use in scripts."""
    from hopline.local_key import local_key_file, operator_key_file, read_local_key, read_operator_key
    from hopline.settings import load_settings
    from indexers.errors import ConfigurationError

    data_dir = load_settings().local.data_dir
    key = read_operator_key(data_dir) if operator else read_local_key(data_dir)
    if key is None:
        place = operator_key_file(data_dir) if operator else local_key_file(data_dir)
        msg = f"{place} is not there: `hopline up` makes the local key"
        raise ConfigurationError(msg)
    typer.echo(key)


@app.command("create")
def create(
    *,
    agent: Annotated[str, typer.Option("--agent", help="Who holds the key.")],
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Tenant; an operator's default: local.")
    ] = None,
    team: Annotated[
        list[str] | None, typer.Option("--team", help="A team of the agent; may be given again.")
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option("--role", help="reader, agent, curator or admin; may be given again. Default: agent."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="What the key is for.")] = "",
    expires: Annotated[
        str | None, typer.Option("--expires", help="When the key ends, ISO 8601; default: never.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: only a digest of it is stored."""
    from hopline import admin_calls as calls
    from hopline.cli.connection import administering

    with administering() as client:
        call = calls.create_key(
            agent,
            tenant=tenant or _own_tenant(client),
            teams=team or (),
            roles=role or ("agent",),
            name=name,
            expires_at=expires,
        )
        _print_new(client.call(call), as_json=as_json)


@app.command("list")
def list_command(*, tenant: Tenant = None, as_json: AsJson = False) -> None:
    """List keys, revoked and expired ones too: an operator sees all, an admin those of the own tenant."""
    from hopline.cli.connection import administering
    from hopline.cli.terminal import print_json

    with administering() as client:
        found = list(_all(client, tenant))
    if as_json:
        print_json({"keys": found})
        return
    for key in found:
        _print(key)
    if not found:
        typer.echo("No keys but those of the key file.")


@app.command("rotate")
def rotate(
    key_id: KeyId,
    *,
    grace_seconds: Annotated[
        int, typer.Option("--grace-seconds", min=0, help="So long the secret before counts too.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Give a key another secret and print it, this once. Id, tenant and roles stay."""
    from hopline import admin_calls as calls
    from hopline.cli.connection import administering

    with administering() as client:
        _print_new(client.call(calls.rotate_key(key_id, grace_seconds=grace_seconds)), as_json=as_json)


@app.command("revoke")
def revoke(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Revoke a key for good. Every replica refuses it within a few seconds (`api.key_cache_seconds`)."""
    from hopline import admin_calls as calls
    from hopline.cli.connection import administering
    from hopline.cli.terminal import print_json

    with administering() as client:
        key = client.call(calls.revoke_key(key_id))
    if as_json:
        print_json(key)
    else:
        _print(key)


def _own_tenant(client: HoplineClient) -> str | None:
    """An operator has no tenant to make a key of: then it is the local user's."""
    from hopline import admin_calls as calls
    from hopline.local_key import LOCAL_TENANT

    return LOCAL_TENANT if client.call(calls.whoami()).operator else None


def _all(client: HoplineClient, tenant: str | None) -> Iterator[Key]:
    from hopline import admin_calls as calls

    cursor: str | None = None
    while True:
        page = client.call(calls.keys(tenant=tenant, page_size=200, cursor=cursor))
        yield from page.keys
        cursor = page.next_cursor
        if cursor is None:
            return


def _print_new(key: NewKey, *, as_json: bool) -> None:
    """The key alone on standard output, for `KEY=$(hopline keys create …)`."""
    from hopline.cli.terminal import print_json, visible

    if as_json:
        print_json(key)
        return
    said = f"Key {key.key_id} of {key.agent} in {key.tenant} ({', '.join(key.roles)}). It is shown this once:"
    typer.echo(visible(said), err=True)
    typer.echo(key.key)


def _print(key: Key) -> None:
    from hopline.cli.terminal import console, visible

    teams = f" teams {', '.join(key.teams)}" if key.teams else ""
    end = f", until {key.expires_at}" if key.expires_at else ""
    named = f"  {key.name}" if key.name else ""
    line = f"{key.key_id}  {key.state}{end}  {key.tenant}/{key.agent}{teams} ({', '.join(key.roles)}){named}"
    console().print(visible(line), markup=False)
