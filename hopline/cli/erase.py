"""`hopline erase`: documents gone for good, with a receipt."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hopline.cli.terminal import visible
from indexers.errors import HoplineError, WrongUsage

if TYPE_CHECKING:
    from hopline.calls import Call
    from hopline.client import HoplineClient
    from hopline.erasure_calls import Erasure

_FIELDS: Final = {"agent": "--agent", "session": "--session", "subject": "--subject", "doc_ids": "DOCUMENT"}
_LOOK_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 120.0


def register(app: typer.Typer) -> None:
    app.command("erase")(erase)


def erase(
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="[DOCUMENT]...", help="Ids, or paths in a vault.")
    ] = None,
    *,
    agent: Annotated[str | None, typer.Option("--agent", help="All that this agent wrote.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="All of this session.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="All that mention this name.")] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Only say whether the receipt in this file is genuine.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The receipt as JSON, to keep.")] = False,
) -> None:
    """Erase documents for good: file, rows, vectors, edges, and entities that nothing else mentions.

    There is no way back: `hopline forget` keeps the file. A receipt says how much there was, that a search of every
    store finds nothing afterwards, and when the last log segment expires. Erasing twice gives zeros.
    """
    from hopline.cli.connection import connected, resolve

    if check is not None:
        _check(check, as_json=as_json)
        return
    if sum((bool(documents), *(value is not None for value in (agent, session, subject)))) != 1:
        msg = "name documents, or give one of --agent, --session and --subject"
        raise WrongUsage(msg)
    with connected() as (client, settings):
        from hopline import erasure_calls as calls

        if documents:
            doc_ids = [resolve(client, settings, document) for document in documents]
            confirm(f"{len(doc_ids)} document{'s' if len(doc_ids) > 1 else ''}", yes=yes)
            found = [_finished(client, calls.erase_document(doc_id)) for doc_id in doc_ids]
        else:
            confirm("all documents that match", yes=yes)
            found = _all(client, calls.erase(agent=agent, session=session, subject=subject))
    show(found, as_json=as_json)


def _all(client: HoplineClient, call: Call[Erasure]) -> list[Erasure]:
    """A call takes 1,000 documents; it is repeated while there are more."""
    found = [_finished(client, call)]
    while found[-1].more:
        found.append(_finished(client, call))
    return found


def _finished(client: HoplineClient, call: Call[Erasure]) -> Erasure:
    from hopline import erasure_calls as calls
    from hopline.calls import InvalidRequest
    from hopline.cli.asking import in_options

    try:
        erasure = client.call(call)
    except InvalidRequest as refused:
        raise WrongUsage(in_options(refused, _FIELDS)) from refused
    deadline = time.monotonic() + _WAIT_SECONDS
    while erasure.state == "pending":
        if time.monotonic() > deadline:
            left = ", ".join(f"{name} {count}" for name, count in erasure.remaining.items() if count)
            msg = f"erasure {erasure.erasure_id} isn't done after {_WAIT_SECONDS:g} s, left: {left}; `hopline status`"
            raise HoplineError(msg)
        time.sleep(_LOOK_SECONDS)
        erasure = client.call(calls.erasure(erasure.erasure_id))
    return erasure


def confirm(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        msg = "erasing can't be undone: say --yes where nobody can be asked"
        raise WrongUsage(msg)
    typer.confirm(f"Erase {what} for good? There is no way back", abort=True, err=True)


def show(erasures: list[Erasure], *, as_json: bool) -> None:
    if as_json:
        import msgspec

        receipts = [msgspec.to_builtins(erasure.receipt) for erasure in erasures]
        typer.echo(_json(receipts[0] if len(receipts) == 1 else receipts))
        return
    for erasure in erasures:
        receipt = erasure.receipt
        if receipt is None:  # pragma: no cover - a complete one has a receipt
            continue
        removed = ", ".join(f"{name} {count}" for name, count in receipt.removed.items() if count)
        typer.echo(visible(f"erased: {removed or 'nothing was left to erase'}"))
        typer.echo(visible(f"  receipt {receipt.erasure_id}; logs hold it until {receipt.log_expires_at}"))


def _check(file: Path, *, as_json: bool) -> None:
    import json

    from hopline import erasure_calls as calls
    from hopline.cli.connection import connected

    try:
        receipt: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        msg = f"{file} can't be read as a receipt (JSON): {exc}"
        raise WrongUsage(msg) from exc
    with connected() as (client, _):
        found = client.call(calls.check_receipt(receipt))
    if as_json:
        typer.echo(_json({"genuine": found.genuine}))
    else:
        typer.echo("genuine: this installation signed it" if found.genuine else "not genuine")
    if not found.genuine:
        raise typer.Exit(1)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
