"""`hopline demo`: from nothing to explained hits on the example vault."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from hopline.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hopline.local.demo import DemoCommands
    from hopline.local.maven import Say

#: What it shows, the query, and a note that must be among the hits.
SEARCHES = (
    (
        "A question in plain English",
        "what happened when payouts stopped at night",
        "incidents/INC-2047.md",
    ),
    ("An exact code", "ORA-01555", "runbooks/ORA-01555 snapshot too old.md"),
    ("Korean", "스캐너가 응답하지 않을 때 절차", "한국 팀/오프라인 모드 운영.md"),
)

#: Entities that are counted: one page.
_COUNTED_MAX = 200


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    *,
    down: Annotated[bool, typer.Option("--down", help="Stop a running demo and leave.")] = False,
) -> None:
    """Start Hopline on the example vault with data of its own, search it three times and list entities.

    It stays running for you to try, and a second `hopline demo` searches it again. A demo that fails stops
    what it had started.
    """
    from hopline.local import demo as steps

    if down:
        say("the demo is stopped" if steps.stop_demo(say) else "no demo is running")
        return
    if steps.is_running():
        say(
            "the demo is running already: searching it again (`make demo-down`, then `make demo`, starts anew)"
        )
        _run()
        return
    try:
        steps.begin_anew(say)
        _run()
    except BaseException:
        steps.stop_demo(say)
        raise


def _run() -> None:
    from hopline.local import demo as steps
    from indexers.errors import HoplineError

    commands = steps.DemoCommands.on_demo()
    _title("Starting Hopline on examples/vault")
    commands.show("up")
    _title("Indexing")
    files = steps.wait_searchable(commands, say)
    say(f"  {files} notes are searchable")
    for what, query, expected in SEARCHES:
        _title(f'{what}: hopline search "{query}"')
        found = [hit["path"] for hit in commands.answer("search", query, "--limit", "5")["hits"]]
        if expected not in found:
            raise HoplineError(f"{expected} was not found for {query!r}, but {found}")
        commands.show("search", query, "--limit", "3")
    _show_entities(commands, say)
    _title("Try next")
    say(last_words(os.environ))


def last_words(env: Mapping[str, str]) -> str:
    """What to try in a shell of these variables, and how to leave."""
    from hopline.local import demo as steps

    aside = " ".join(steps.left_out(env))
    return (f"  unset {aside}  # the demo leaves these aside\n" if aside else "") + (
        f"  export HOPLINE_CONFIG={steps.config_file()}\n"
        f"  source .venv/bin/activate\n"
        f'  hopline search "who is on call for payouts"        # any question\n'
        f"  hopline search INC-2041 --explain                  # every factor of the score\n"
        f"  hopline entity list payments                       # who and what the notes speak of\n"
        f"  hopline status                                     # processes, lag, the watcher\n"
        f"Edit a note in {steps.example_vault()}: it is found within a second or two.\n"
        f"Stop the demo: make demo-down (the next make demo begins with nothing)\n"
        f"Then your own notes: unset HOPLINE_CONFIG; hopline up --vault ~/notes\n"
        f"Remove what the stopped demo kept: rm -r {steps.demo_dir()}"
    )


def _show_entities(commands: DemoCommands, say: Say) -> None:
    """The notes' entities have followed meanwhile."""
    from hopline.local import demo as steps
    from indexers.errors import HoplineError

    _title("Entities: hopline entity list --label service")
    steps.wait_extracted(commands, say)
    found = commands.answer("entity", "list", "--limit", str(_COUNTED_MAX))["entities"]
    if not found:
        raise HoplineError("no entity was found")
    more = "more than " if len(found) == _COUNTED_MAX else ""
    labels = len({entity["label"] for entity in found})
    say(f"  {more}{len(found)} entities of {labels} kinds")
    commands.show("entity", "list", "--label", "service", "--limit", "5")


def _title(text: str) -> None:
    say()
    say(f"== {text}", bold=True)
