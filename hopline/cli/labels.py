"""`hopline labels show|set`: what is looked for in a namespace's documents."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from indexers.errors import HoplineError, WrongUsage

if TYPE_CHECKING:
    from hopline.client import HoplineClient
    from hopline.entity_answers import Labels

Owner = Annotated[str, typer.Argument(metavar="[NAMESPACE]", help="shared, team:<team> or agent:<agent>.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, for programs; `labels set` takes it.")]

#: The agent moves on every few seconds, but for a page of very long notes.
IDLE_SECONDS = 120.0

app = typer.Typer(help="Labels of entities, per namespace.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="labels")


@app.command("show")
def show_command(namespace: Owner = "shared", *, as_json: AsJson = False) -> None:
    """Show labels, thresholds and patterns, and how far the extraction with them is."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import print_json

    with connected() as (client, _):
        found = client.call(calls.labels(namespace))
    if as_json:
        print_json(found)
        return
    _print(found)


@app.command("set")
def set_command(
    file: Annotated[
        Path, typer.Argument(help="JSON as `labels show --json` prints it; - for standard input.")
    ],
    namespace: Owner = "shared",
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Until every document is extracted anew.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change the labels of a namespace; its documents are extracted again in the background."""
    from hopline import entity_calls as calls
    from hopline.cli.connection import connected
    from hopline.cli.terminal import print_json

    value = _read(file)
    with connected() as (client, _):
        found = client.call(calls.set_labels(namespace, value))
        if wait:
            found = _extracted(client, found)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _extracted(client: HoplineClient, found: Labels) -> Labels:
    """Once every document is extracted with the labels. HoplineError where nothing moves for a while."""
    from hopline import entity_calls as calls

    moved_at = time.monotonic()
    while found.progress.done < found.progress.total:
        typer.echo(f"{found.progress.done} of {found.progress.total} documents …", err=True)
        time.sleep(1)
        before, found = found.progress, client.call(calls.labels(found.namespace))
        if found.progress != before:
            moved_at = time.monotonic()
        elif time.monotonic() - moved_at > IDLE_SECONDS:
            msg = (
                f"{found.progress.done} of {found.progress.total} documents, nothing moved for {IDLE_SECONDS:.0f} s: "
                "the labels are set, but does the extract agent run? `hopline status`"
            )
            raise HoplineError(msg)
    return found


def _read(file: Path) -> dict[str, object]:
    from hopline.cli.standard import read_text

    try:
        value = json.loads(read_text() if str(file) == "-" else file.read_text("utf-8"))
    except OSError as exc:
        msg = f"{file}: {exc.strerror}"
        raise HoplineError(msg) from exc
    except ValueError as exc:
        msg = f"{file} is no JSON: {exc}"
        raise WrongUsage(msg) from exc
    if not isinstance(value, dict) or not isinstance(value.get("labels"), list):
        msg = f'{file}: an object with "labels" is due, as `hopline labels show --json` prints it'
        raise WrongUsage(msg)
    return {name: value[name] for name in ("labels", "patterns", "version") if name in value}


def _print(found: Labels) -> None:
    from hopline.cli.terminal import console, visible

    out = console()
    out.print(f"{found.namespace}, version {found.version}", style="bold", markup=False)
    for label in found.labels:
        prompt = "" if label["prompt"] == label["name"] else f'  read as "{label["prompt"]}"'
        about = f"  {label['description']}" if label.get("description") else ""
        out.print(visible(f"  {label['name']}  from {label['threshold']:g}{prompt}{about}"), markup=False)
    for rule in found.patterns:
        out.print(visible(f"  {rule['label']}  /{rule['pattern']}/"), markup=False)
    if found.problem:
        out.print(visible(f"PROBLEM: {found.problem}"), style="yellow", markup=False)
    out.print(f"{found.progress.done} of {found.progress.total} documents are extracted with these.")
