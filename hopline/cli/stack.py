"""`hopline up`, `down`, `status`: the whole of Hopline on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopline.cli.progress import say

if TYPE_CHECKING:
    from hopline.local.state import StackState
    from hopline.local.status import StackReport
    from hopline.settings import Settings

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
    forget_vault: Annotated[
        str | None,
        typer.Option("--forget-vault", metavar="NAME|FOLDER", help="Remember this one no more, and leave."),
    ] = None,
) -> None:
    """Start engines, agents, watcher and query service; return when all are ready.

    The first run downloads the engines (about 150 MB). If Hopline runs already, nothing changes (exit 0); if
    another command is just starting it, this one waits for that.
    """
    from hopline.local.up import UpRequest, start_stack
    from hopline.settings import load_settings

    settings = load_settings()
    if forget_vault is not None:
        _forget(settings, forget_vault)
        return
    request = UpRequest(vaults=tuple(vault or ()), foreground=foreground, engines_only=engines_only)
    result = start_stack(settings, request, say=say)
    if foreground and not result.already:
        return
    if result.already:
        say(f"hopline is already {result.state.phase}; `hopline status` says more")
    _tell_next(result.state, settings.local.data_dir / "logs")
    if not result.state.engines_only:
        _tell_waiting(settings)


def down() -> None:
    """Stop everything in order: watcher, query service, agents, engines. Harmless when nothing runs."""
    from hopline.local.down import stop_stack
    from hopline.local.folders import StackFolders
    from hopline.settings import load_settings

    stopped = stop_stack(StackFolders(load_settings().local.data_dir), say=say)
    say("hopline is stopped" if stopped else "hopline isn't running")


def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show each process, how far the agents are behind and what the watcher says.

    Exit 0: all is ready; 1: something is not, a vault is gone or removals are held; 3: nothing runs.
    """
    import asyncio

    from hopline.local.status import report
    from hopline.settings import load_settings
    from streams.logs import quiet_logging

    settings = load_settings()
    quiet_logging()
    found = asyncio.run(report(settings))
    if as_json:
        typer.echo(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        _show(found)
    if not found.running:
        raise typer.Exit(EXIT_NOT_RUNNING)
    if not found.healthy:
        raise typer.Exit(EXIT_UNHEALTHY)


def _forget(settings: Settings, vault: str) -> None:
    from hopline.local.up import forget_vault

    gone = forget_vault(settings, vault)
    say(f"forgotten: {gone.name} ({gone.path}). Its documents are found until `hopline rebuild`.")


def _tell_waiting(settings: Settings) -> None:
    """Ready to be asked isn't all indexed."""
    import asyncio

    from hopline.local.status import report
    from streams.logs import quiet_logging

    quiet_logging()
    found = asyncio.run(report(settings))
    waiting = sum(behind or 0 for behind in found.lag.values())
    scanning = any(root["state"] == "scanning" for root in found.vaults)
    if waiting or scanning:
        so_far = " so far" if scanning else ""
        say(f"Still indexing: {_count(waiting, 'record')} waiting{so_far}; `hopline status`")


def _tell_next(state: StackState, logs: Path) -> None:
    if state.api_url:
        say(f"\nQuery service  {state.api_url}")
    else:
        say(f"\nKafka          {state.kafka_servers}\nOpenSearch     {state.opensearch_url}")
    for number, vault in enumerate(state.vaults):
        say(f"{'' if number else 'Vaults':15}{vault}")
    say(f"Logs           {logs}")
    if state.api_url:
        say('Next           hopline search "your question" · hopline status · hopline down')
    else:
        say("Next           hopline status · hopline down")


def _show(found: StackReport) -> None:
    if not found.running:
        why = found.message.partition("\n")[0]
        say(f"hopline isn't running{f': {why}' if why else ''}")
    elif found.phase != "running":
        say(f"hopline is {found.phase}")
    for process in found.processes:
        mark = "ready" if process.ready else process.phase.upper()
        pid = f"pid {process.pid}" if process.pid else "" if mark == process.phase.upper() else process.phase
        extra = f"  {_count(process.restarts, 'restart')}" if process.restarts else ""
        say(f"{process.name:12}{mark:12}{pid:14}{process.url}{extra}".rstrip())
        if not process.ready and process.log:
            say(f"{'':12}see {process.log}")
        if process.waits:
            names = ", ".join(process.waits.dependencies)
            say(f"{'':12}HELD: waits for {names}; nothing finished for {process.waits.seconds:.0f} s")
    for agent, behind in found.lag.items():
        waiting = "behind by unknown" if behind is None else f"{_count(behind, 'record')} waiting"
        say(f"{agent:12}{waiting}")
    for root in found.vaults:
        _show_root(root)
    say(f"{'data':12}{found.data_dir}\n{'logs':12}{found.log_dir}")


def _show_root(root: Mapping[str, Any]) -> None:
    from hopline.local.status import is_wrong

    state = root["state"].upper() if is_wrong(root) and not root.get("held_removals") else root["state"]
    detail = f"  {root['detail']}" if root.get("detail") else ""
    say(f"vault {root['root']}: {state}, {_count(root['files'], 'file')}{detail}")
    left_out = ((root.get("last_scan") or {}).get("problems") or {}).get("count", 0)
    if left_out:
        say(f"{'':12}{_count(left_out, 'file')} left out; `hopline rescan` names them")
    held = root.get("held_removals")
    if held:
        say(f"{'':12}HELD: {_count(held['count'], 'removal')} waiting for you; if right: {held['confirm']}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
