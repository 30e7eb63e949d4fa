"""`hopline tenants`: who lives here, with which limits; and the audit log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indexers.errors import WrongUsage

if TYPE_CHECKING:
    from hopline.admin_answers import AuditEntry, Tenant

Name = Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant.")]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=NUMBER",
        help="A limit of its own, such as writes_per_second=50; may be given again. 0: no limit.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")]

app = typer.Typer(
    help="Tenants. Asked with HOPLINE_API_KEY, else with the local operator's key.", no_args_is_help=True
)


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="tenants")


@app.command("create")
def create(
    name: Name,
    *,
    note: Annotated[str, typer.Option("--note", help="What the tenant is.")] = "",
    limit: Limits = None,
    as_json: AsJson = False,
) -> None:
    """Enter a tenant. `hopline keys create --tenant` then makes its first admin."""
    from hopline import admin_calls as calls

    _show(calls.create_tenant(name, note=note, limits=_limits(limit)), as_json=as_json)


@app.command("list")
def list_command(*, as_json: AsJson = False) -> None:
    """List tenants: all for an operator, the own for an admin."""
    from hopline import admin_calls as calls
    from hopline.cli.connection import administering
    from hopline.cli.terminal import print_json

    found: list[Tenant] = []
    cursor: str | None = None
    with administering() as client:
        while True:
            page = client.call(calls.tenants(page_size=200, cursor=cursor))
            found += page.tenants
            cursor = page.next_cursor
            if cursor is None:
                break
    if as_json:
        print_json({"tenants": found})
        return
    for tenant in found:
        _print(tenant)
    if not found:
        typer.echo("No tenants.")


@app.command("show")
def show(name: Name, *, as_json: AsJson = False) -> None:
    """Show a tenant's state and limits."""
    from hopline import admin_calls as calls

    _show(calls.tenant(name), as_json=as_json)


@app.command("limits")
def limits_command(name: Name, *, limit: Limits = None, as_json: AsJson = False) -> None:
    """Replace all of a tenant's own limits; without --limit it has none of its own any more."""
    from hopline import admin_calls as calls

    _show(calls.change_tenant(name, limits=_limits(limit)), as_json=as_json)


@app.command("suspend")
def suspend(name: Name, *, as_json: AsJson = False) -> None:
    """Refuse all keys and tokens of a tenant, within a few seconds (`api.key_cache_seconds`)."""
    from hopline import admin_calls as calls

    _show(calls.change_tenant(name, suspended=True), as_json=as_json)


@app.command("resume")
def resume(name: Name, *, as_json: AsJson = False) -> None:
    """Take the keys of a suspended tenant again."""
    from hopline import admin_calls as calls

    _show(calls.change_tenant(name, suspended=False), as_json=as_json)


@app.command("audit")
def audit(
    name: Annotated[
        str | None, typer.Argument(metavar="[TENANT]", help="Tenant; default: that of the key.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="Entries of one page.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where the page before ended.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the audit log, newest first: admin actions, refusals and erasures."""
    from hopline import admin_calls as calls
    from hopline.cli.connection import administering
    from hopline.cli.terminal import print_json

    with administering() as client:
        page = client.call(calls.audit(tenant=name, page_size=limit, cursor=cursor))
    if as_json:
        print_json(page)
        return
    for entry in page.entries:
        _print_entry(entry)
    if page.next_cursor is not None:
        typer.echo(f"More: --cursor {page.next_cursor}")


def _limits(said: list[str] | None) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for text in said or ():
        name, sign, number = text.partition("=")
        try:
            value = json.loads(number) if sign else None
        except ValueError:
            value = None
        if isinstance(value, bool) or not isinstance(value, int | float):
            msg = f"--limit {text!r}: give NAME=NUMBER, such as writes_per_second=50"
            raise WrongUsage(msg)
        found[name] = value
    return found


def _show(call: Any, *, as_json: bool) -> None:
    from hopline.cli.connection import administering
    from hopline.cli.terminal import print_json

    with administering() as client:
        tenant: Tenant = client.call(call)
    if as_json:
        print_json(tenant)
    else:
        _print(tenant)


def _print(tenant: Tenant) -> None:
    from hopline.cli.terminal import console, visible

    own = "  ".join(f"{name}={value}" for name, value in tenant.limits.items())
    line = "  ".join(part for part in (tenant.tenant, tenant.state, own, tenant.note) if part)
    console().print(visible(line), markup=False)


def _print_entry(entry: AuditEntry) -> None:
    from hopline.cli.terminal import console, visible

    key = f" ({entry.by_key})" if entry.by_key else ""
    more = "".join(f"  {name}={value}" for name, value in entry.detail.items() if value)
    who = f"{entry.by_tenant}/{entry.by_agent}{key}"
    line = f"{entry.at}  {entry.outcome:6}  {entry.action}  {entry.target}  by {who}{more}"
    console().print(visible(line), markup=False)


@app.command("erase")
def erase(
    name: Name,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a tenant for good: its keys are unknown at once, then all that it has goes. For operators."""
    from hopline import admin_calls as calls
    from hopline.cli.connection import administering
    from hopline.cli.erase import confirm, show
    from hopline.erasure_calls import Erasure

    confirm(f"the tenant {name} and all that it has", yes=yes)
    found: list[Erasure] = []
    with administering() as client:
        while not found or found[-1].more or found[-1].state == "pending":
            found.append(client.call(calls.erase_tenant(name)))
            if not as_json:
                typer.echo(f"{sum(erasure.documents for erasure in found)} documents …", err=True)
    show([erasure for erasure in found if erasure.receipt], as_json=as_json)
