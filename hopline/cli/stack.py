"""`hopline up`, `down`, `status`: the whole of Hopline on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hopline.local.state import StackState
    from hopline.local.status import StackReport

EXIT_UNHEALTHY = 1
EXIT_NOT_RUNNING = 3


def register(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(down)
    app.command()(status)


def up(
    *,
    vault: Annotated[
        list[Path] | None,
        typer.Option("--vault", help="A folder of Markdown files to index; may be given again. Remembered."),
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Ctrl-C stops all.")] = False,
    engines_only: Annotated[bool, typer.Option("--engines-only", help="Kafka and OpenSearch only.")] = False,
) -> None:
    """Start engines, agents, watcher and query service; return when all are ready.

    The first run downloads the engines (about 150 MB). If Hopline runs already, nothing changes (exit 0).
    """
    from hopline.local.up import UpRequest, start_stack
    from hopline.settings import load_settings

    settings = load_settings()
    request = UpRequest(vaults=tuple(vault or ()), foreground=foreground, engines_only=engines_only)
    result = start_stack(settings, request, say=_say)
    if foreground and not result.already:
        return
    if result.already:
        _say(f"hopline is already {result.state.phase}; `hopline status` says more")
    _tell_next(result.state, settings.local.data_dir / "logs")


def down() -> None:
    """Stop everything in order: watcher, query service, agents, engines. Harmless when nothing runs."""
    from hopline.local.down import stop_stack
    from hopline.local.folders import StackFolders
    from hopline.settings import load_settings

    stopped = stop_stack(StackFolders(load_settings().local.data_dir), say=_say)
    _say("hopline is stopped" if stopped else "hopline isn't running")


def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show each process, how far the agents are behind and what the watcher says.

    Exit 0: all is ready; 1: something is not; 3: nothing runs.
    """
    import asyncio

    from hopline.local.status import report
    from hopline.settings import load_settings

    found = asyncio.run(report(load_settings()))
    if as_json:
        typer.echo(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        _show(found)
    if not found.running:
        raise typer.Exit(EXIT_NOT_RUNNING)
    if not found.healthy:
        raise typer.Exit(EXIT_UNHEALTHY)


def _say(text: str) -> None:
    typer.echo(text)


def _tell_next(state: StackState, logs: Path) -> None:
    if state.api_url:
        _say(f"\nQuery service  {state.api_url}")
    else:
        _say(f"\nKafka          {state.kafka_servers}\nOpenSearch     {state.opensearch_url}")
    for number, vault in enumerate(state.vaults):
        _say(f"{'' if number else 'Vaults':15}{vault}")
    _say(f"Logs           {logs}")
    if state.api_url:
        _say('Next           hopline search "your question" · hopline status · hopline down')
    else:
        _say("Next           hopline status · hopline down")


def _show(found: StackReport) -> None:
    if not found.running:
        _say(f"hopline isn't running{f': {found.message}' if found.message else ''}")
    for process in found.processes:
        mark = "ready" if process.ready else process.phase.upper()
        pid = f"pid {process.pid}" if process.pid else process.phase
        extra = f"  {process.restarts} restarts" if process.restarts else ""
        _say(f"{process.name:12}{mark:12}{pid:14}{process.url}{extra}")
        if not process.ready and process.log:
            _say(f"{'':12}see {process.log}")
    for agent, behind in found.lag.items():
        _say(f"{agent:12}{'behind by unknown' if behind is None else f'{behind} records waiting'}")
    for root in found.vaults:
        held = root.get("held_removals")
        note = f"  HELD: {held['count']} removals; {held['confirm']}" if held else ""
        detail = f"  {root['detail']}" if root.get("detail") else ""
        _say(f"vault {root['root']}: {root['state']}, {root['files']} files{detail}{note}")
