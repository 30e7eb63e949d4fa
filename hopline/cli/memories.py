"""`hopline write`, `hopline forget`, `hopline events`: memories, and how far a change has come."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from hopline.cli.asking import in_options
from hopline.cli.closed import known_scope, known_state, known_type
from indexers.errors import WrongUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hopline.client import HoplineClient
    from hopline.memory_answers import Event, Milestone, Written
    from hopline.settings import Settings

#: What the service calls a field, and what a person gave for it.
_OPTIONS: Final = {
    "content": "TEXT",
    "title": "--title",
    "tags": "--tag",
    "category": "--category",
    "doc_type": "--type",
    "source": "--source",
    "scope": "--scope",
    "team": "--team",
    "session": "--session",
    "idempotency_key": "--key",
}

Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        callback=known_state,
        help="Until it is ingested, searchable or linked; exit 1 if it doesn't come so far in time.",
    ),
]
Seconds = Annotated[float, typer.Option("--timeout", min=0.1, help="Longest wait, seconds.")]
AsJson = Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")]


def register(app: typer.Typer) -> None:
    app.command("write")(write_command)
    app.command("forget")(forget_command)
    app.command("events")(events_command)


def write_command(  # noqa: PLR0913 - one parameter an option
    text: Annotated[str | None, typer.Argument(help="The memory; `-` or nothing: standard input.")] = None,
    *,
    title: Annotated[str | None, typer.Option("--title", help="Title; also names the file.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="May be given again.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="Category.")] = None,
    doc_type: Annotated[
        str,
        typer.Option("--type", callback=known_type, help="memory, note, context, skill or session_summary."),
    ] = "memory",
    source: Annotated[str, typer.Option("--source", help="Where it comes from; ranked.")] = "memory_tool",
    scope: Annotated[
        str | None,
        typer.Option("--scope", callback=known_scope, help="personal (as without it), team or shared."),
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", help="Which one, where the key is of several teams.")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", help="Conversation that it is of.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: with the same one it is written once.")
    ] = None,
    wait: Wait = None,
    timeout: Seconds = 30.0,
    root: Annotated[
        str | None,
        typer.Option(
            "--root", help="Straight into the pipeline for this vault root, without the query service."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a small memory: it becomes a file of the vault and is searchable a moment later."""
    from hopline.cli.standard import read_text

    content = read_text() if text is None or text == "-" else text
    own = {"title": title, "category": category, "doc_type": doc_type, "source": source}
    of_service = {"scope": scope, "team": team, "session": session, "idempotency_key": key}
    if root is not None:
        _require_none_of(of_service | {"wait": wait})
        _write_to_pipeline(root, content, own | {"tags": tag or []}, as_json=as_json)
        return
    if not content.strip():
        msg = "the memory is empty"
        raise WrongUsage(msg)
    fields: dict[str, Any] = {name: value for name, value in (own | of_service).items() if value is not None}
    asked = _Asked(wait=wait, timeout=timeout, as_json=as_json)
    _change(lambda client, _: client.write(content, tags=tag or (), **fields), asked)


def forget_command(
    document: Annotated[str, typer.Argument(help="Id of a document, or its path in a configured vault.")],
    *,
    wait: Wait = None,
    timeout: Seconds = 30.0,
    as_json: AsJson = False,
) -> None:
    """Let a document be found no more; its file is laid aside in `.hopline/forgotten` of its vault."""
    from hopline.cli.connection import resolve

    asked = _Asked(wait=wait, timeout=timeout, as_json=as_json)
    _change(lambda client, settings: client.forget(resolve(client, settings, document)), asked)


def events_command(
    event_id: Annotated[str, typer.Argument(help="Id that a write or forget answered with.")],
    *,
    wait: Wait = None,
    timeout: Seconds = 30.0,
    as_json: AsJson = False,
) -> None:
    """Show how far a change has come, stage by stage with times. Exit 1 where it failed."""
    from hopline.cli.connection import connected
    from hopline.cli.terminal import print_json, visible

    with connected() as (client, _settings):
        found = _waited(client, event_id, wait, timeout) if wait else client.event(event_id)
    if as_json:
        print_json(found)
    else:
        lines = [f"{found.kind} of {found.path}: {_told(found)}"]
        lines += [f"  {stage.at}  {stage.stage}" for stage in found.stages]
        typer.echo(visible("\n".join(lines)))
    raise typer.Exit(0 if _went_well(found, wait) else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    wait: str | None
    timeout: float
    as_json: bool


def _change(act: Callable[[HoplineClient, Settings], Written], asked: _Asked) -> None:
    """What was taken, with its event as far as it was waited for."""
    from msgspec.structs import replace

    from hopline.calls import InvalidRequest
    from hopline.cli.connection import connected
    from hopline.cli.terminal import print_json, visible

    with connected() as (client, settings):
        try:
            done = act(client, settings)
        except InvalidRequest as exc:
            raise WrongUsage(in_options(exc, _OPTIONS)) from exc
        if asked.wait is not None:
            done = replace(done, event=_waited(client, done.event_id, asked.wait, asked.timeout))
    if asked.as_json:
        print_json(done)
    else:
        ids = f"document {done.doc_id}, event {done.event_id}"
        typer.echo(visible(f"{done.path}: {_told(done.event)} ({ids})"))
    raise typer.Exit(0 if _went_well(done.event, asked.wait) else 1)


def _waited(client: HoplineClient, event_id: str, wait: str, timeout: float) -> Event:
    return client.wait(event_id, cast("Milestone", wait), timeout_seconds=timeout)


def _told(event: Event) -> str:
    return event.state if event.failure is None else f"{event.state}, {event.failure.reason}"


def _went_well(event: Event, wait: str | None) -> bool:
    if wait is not None:
        return event.reached(cast("Milestone", wait))
    return event.state != "failed"


def _require_none_of(options: Mapping[str, str | None]) -> None:
    wrong = [_OPTIONS.get(name, f"--{name}") for name, value in options.items() if value is not None]
    if wrong:
        msg = f"{', '.join(wrong)}: the query service's business; not with --root"
        raise WrongUsage(msg)


def _write_to_pipeline(root: str, content: str, fields: dict[str, Any], *, as_json: bool) -> None:
    from hopline.cli.pipeline_write import write_to_pipeline
    from hopline.cli.terminal import visible
    from hopline.settings import load_settings
    from indexers.vault.roots import only_root
    from streams.logs import quiet_logging

    settings = load_settings()
    quiet_logging()
    done = asyncio.run(write_to_pipeline(settings, only_root(settings.vaults, root), content, fields))
    said = f"{done['path']}: searchable in a moment"
    typer.echo(json.dumps(done, ensure_ascii=False) if as_json else visible(said))
