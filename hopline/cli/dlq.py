"""`hopline dlq list|show|replay`: records that no retry could mend."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from hopline.cli.terminal import visible
from indexers.errors import HoplineError

if TYPE_CHECKING:
    from hopline.settings import Settings
    from streams.dlq import LetterFilter, Replayed
    from streams.events import DeadLetter

Reason = Annotated[str | None, typer.Option("--reason", help="Only this error class, as `list` shows it.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Only letters of this tenant.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Only letters of this agent.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]

_STORE_TRIES = 5

app = typer.Typer(
    help="Dead letters: records that no retry could mend. Kept for 30 days.", no_args_is_help=True
)


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="dlq")


@app.command("list")
def list_command(
    *,
    reason: Reason = None,
    tenant: Tenant = None,
    agent: Agent = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Letters of one page.")] = 20,
    page: Annotated[int, typer.Option("--page", min=1, help="Which page; 1 holds the newest.")] = 1,
    as_json: AsJson = False,
) -> None:
    """List dead letters, newest first."""
    letters = _newest_first(_wanted(reason, tenant, agent))
    start = (page - 1) * limit
    shown = letters[start : start + limit]
    if as_json:
        rows = [_summary(letter) for letter in shown]
        typer.echo(json.dumps({"total": len(letters), "page": page, "letters": rows}, ensure_ascii=False))
        return
    for letter in shown:
        show_line(letter)
    if not letters:
        typer.echo("No dead letters.")
    elif not shown:
        typer.echo(f"Page {page} is past the end of {len(letters)} letters.")
    else:
        typer.echo(
            f"{start + 1}–{start + len(shown)} of {len(letters)}. Look at one: hopline dlq show ID. "
            "Send again: hopline dlq replay ID"
        )


@app.command("show")
def show_command(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="Id, or its beginning if no other has it.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter whole: where it was, why it failed, its key and its bytes."""
    from streams.dlq import LetterFilter

    found = _only(_newest_first(LetterFilter()), letter_id)
    letter = asyncio.run(_one(LetterFilter(ids=frozenset({found.dead_letter_id}))))
    if as_json:
        typer.echo(json.dumps(_whole(letter), ensure_ascii=False))
        return
    show_whole(letter)


@app.command("replay")
def replay_command(
    letter_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Letters to send.")
    ] = None,
    *,
    reason: Reason = None,
    tenant: Tenant = None,
    agent: Agent = None,
    everything: Annotated[bool, typer.Option("--all", help="All letters that the filters leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters to their topic again, byte for byte.

    Doing it twice changes nothing. A record that is still bad becomes a letter again.

    Events of more than 30 days are refused: a deletion since then could be undone.
    """
    if bool(letter_ids) == everything:
        msg = "name the letters, or take all that the filters leave with --all"
        raise typer.BadParameter(msg)
    wanted = _wanted(reason, tenant, agent)
    letters = _newest_first(wanted)
    chosen = letters if everything else [_only(letters, letter_id) for letter_id in letter_ids or ()]
    ids = frozenset(letter.dead_letter_id for letter in chosen)
    replayed = asyncio.run(_replay(replace(wanted, ids=ids), total=len(chosen), show_progress=not as_json))
    if as_json:
        refused = [{"dead_letter_id": letter_id, "reason": why} for letter_id, why in replayed.refused]
        typer.echo(json.dumps({"sent": replayed.sent, "refused": refused}, ensure_ascii=False))
    else:
        typer.echo(f"{replayed.sent} of {len(chosen)} sent again.")
        for letter_id, why in replayed.refused:
            typer.echo(visible(f"refused {letter_id}: {why}"))
    if replayed.refused:
        raise typer.Exit(1)


def show_line(letter: DeadLetter) -> None:
    head = f"{letter.dead_letter_id}  {letter.failed_at}  {letter.agent}  {letter.error_class}"
    place = f"{letter.topic}:{letter.partition}:{letter.offset}"
    typer.echo(visible(f"{head}\n    {place}  {_one_line(letter.reason)}"))


def show_whole(letter: DeadLetter) -> None:
    for name, value in _summary(letter).items():
        typer.echo(visible(f"{name}: {value}"))
    typer.echo(f"key: {_readable(letter.key)}")
    typer.echo(f"value ({len(letter.value or b'')} bytes): {_readable(letter.value)}")


def _settings() -> Settings:
    from hopline.settings import load_settings
    from streams.logs import quiet_logging

    quiet_logging()
    return load_settings()


def _wanted(reason: str | None = None, tenant: str | None = None, agent: str | None = None) -> LetterFilter:
    from streams.dlq import LetterFilter

    return LetterFilter(error_class=reason, tenant_id=tenant, agent=agent)


async def _read(wanted: LetterFilter) -> AsyncIterator[DeadLetter]:
    """Without those of documents that were erased: the log still has them, nobody is shown them."""
    from indexers.opensearch.open import gate_at
    from indexers.opensearch.retry import RetryPolicy
    from streams.dlq import read_letters
    from streams.fences import without_erased
    from streams.topics import Topics

    settings = _settings()
    retry = RetryPolicy(attempts=_STORE_TRIES)
    gate = gate_at(settings.opensearch_url, settings.opensearch, prefix=settings.prefix, retry=retry)
    letters = read_letters(settings.kafka, settings.kafka_servers, Topics(settings.prefix), wanted)
    try:
        async for letter in without_erased(gate, letters):
            yield letter
    finally:
        await gate.close()


def _newest_first(wanted: LetterFilter) -> list[DeadLetter]:
    """Without their bytes: a page of the list must not need the memory of all letters."""

    async def read() -> list[DeadLetter]:
        return [msgspec.structs.replace(letter, value=None) async for letter in _read(wanted)]

    return sorted(asyncio.run(read()), key=lambda x: (x.failed_at, x.dead_letter_id), reverse=True)


async def _one(wanted: LetterFilter) -> DeadLetter:
    async for letter in _read(wanted):
        return letter
    msg = "the letter has just expired"
    raise HoplineError(msg)


async def _replay(wanted: LetterFilter, *, total: int, show_progress: bool) -> Replayed:
    from streams.dlq import replay
    from streams.producer import EventProducer
    from streams.topics import Topics

    settings = _settings()

    def show(sent: int) -> None:
        if show_progress:
            typer.echo(f"{sent} of {total} …", err=True)

    async with EventProducer(settings.kafka, settings.kafka_servers) as producer:
        return await replay(_read(wanted), producer=producer, topics=Topics(settings.prefix), on_sent=show)


def _only(letters: Sequence[DeadLetter], letter_id: str) -> DeadLetter:
    found = [letter for letter in letters if letter.dead_letter_id.startswith(letter_id)]
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} dead letters begin with" if found else "there is no dead letter"
    msg = f"{what} {letter_id}; `hopline dlq list` shows the ids"
    raise HoplineError(msg)


def _summary(letter: DeadLetter) -> dict[str, Any]:
    return {
        "dead_letter_id": letter.dead_letter_id,
        "failed_at": letter.failed_at,
        "agent": letter.agent,
        "tenant_id": letter.tenant_id,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "error_class": letter.error_class,
        "reason": letter.reason,
    }


def _whole(letter: DeadLetter) -> dict[str, Any]:
    from base64 import b64encode

    raw = {"key": letter.key, "value": letter.value}
    encoded = {name: None if part is None else b64encode(part).decode() for name, part in raw.items()}
    return {**_summary(letter), "key_base64": encoded["key"], "value_base64": encoded["value"]}


def _readable(raw: bytes | None) -> str:
    """Bytes as text where they are text; terminals get no control characters from a stranger's record."""
    if raw is None:
        return "none"
    text = raw.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _one_line(reason: str) -> str:
    line = _readable(reason.encode("utf-8", "backslashreplace")).replace("\n", " ")
    return line if len(line) <= 100 else line[:99] + "…"
