"""The command `hopline`: the commands, and what every error becomes.

Exit codes: 0 done · 1 failed, or something is wrong that was asked about · 2 wrong usage or settings ·
3 nothing of the local stack runs, or removals are held (`hopline rescan`) · 130 stopped with Ctrl-C.
With `--json` an error is an object on stderr: {"error": "…"}.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from hopline.cli import (
    agents,
    api,
    around,
    context,
    demo,
    dlq,
    entity,
    erase,
    evaluate,
    init,
    keys,
    labels,
    links,
    mcp,
    memories,
    read,
    reindex,
    relations,
    search,
    settings,
    stack,
    tenants,
    train,
    trust,
    watch,
)
from hopline.cli.standard import require_text, take_streams
from hopline.cli.terminal import visible
from indexers.errors import Away, ConfigurationError, HoplineError, WrongUsage

#: In the order of `hopline --help`.
COMMANDS = (
    stack,
    search,
    context,
    read,
    memories,
    links,
    around,
    entity,
    labels,
    trust,
    reindex,
    relations,
    erase,
    watch,
    agents,
    api,
    mcp,
    dlq,
    keys,
    tenants,
    evaluate,
    train,
    settings,
    init,
    demo,
)


def build_app() -> typer.Typer:
    """Modules import what is heavy inside their commands, so that `--help` stays fast."""
    app = typer.Typer(
        name="hopline",
        help="The memory of agent fleets: Markdown vaults, streamed into a searchable graph.",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for module in COMMANDS:
        module.register(app)
    return app


def main() -> None:
    take_streams()
    try:
        try:
            require_text(sys.argv[1:])
            if _wants_json():
                _run_for_programs()
            build_app()(prog_name="hopline")
        finally:
            sys.stdout.flush()
    except Away as exc:
        sys.exit(_tell_away(exc))
    except HoplineError as exc:
        _tell(str(exc))
        sys.exit(2 if isinstance(exc, (ConfigurationError, WrongUsage)) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


def _run_for_programs() -> NoReturn:
    """As without `--json`, but what is wrong with the command's words becomes JSON too."""
    try:
        sys.exit(build_app()(prog_name="hopline", standalone_mode=False) or 0)
    except typer.Abort:
        _tell("aborted")
        sys.exit(1)
    except typer.TyperException as exc:
        _tell(exc.format_message())
        sys.exit(exc.exit_code)


def _wants_json() -> bool:
    words = sys.argv[1:]
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _tell(message: str) -> None:
    """What is wrong, on stderr: one text, or with `--json` one object."""
    text = f"hopline: {visible(message)}"
    if _wants_json():
        import json

        text = json.dumps({"error": message}, ensure_ascii=False)
    print(text, file=sys.stderr)  # noqa: T201 - the command's own error line


def _tell_away(fault: Away) -> int:
    """What is away, where it should be and what to do; gives the exit code."""
    from hopline.local.folders import StackFolders
    from hopline.local.preflight import own_engines
    from hopline.local.state import read_state
    from hopline.settings import load_settings

    settings, text = load_settings(), str(fault)
    own = own_engines(settings)
    ours = {
        "Kafka": own.kafka,
        "OpenSearch": own.opensearch,
        "the query service": "HOPLINE_API_URL" not in os.environ,
    }.get(fault.service, False)
    where = {"Kafka": settings.kafka_servers, "OpenSearch": settings.opensearch_url}.get(fault.service)
    if where:
        ask = (
            "is Hopline running? `hopline status`, `hopline up`"
            if ours
            else "is it up, and the setting right?"
        )
        text = f"{fault.service} doesn't answer at {where}: {ask}"
    _tell(text)
    state = read_state(StackFolders(settings.local.data_dir).state)
    return 3 if ours and (state is None or not state.supervised) else 1


def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if version:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as installed

        try:
            typer.echo(f"hopline {installed('hopline')}")
        except PackageNotFoundError:
            typer.echo("hopline (not installed; run from a checkout)")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
