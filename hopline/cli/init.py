"""`hopline init`: what must be there before the processes start, for installations that `hopline up` doesn't run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hopline.settings import Settings


def register(app: typer.Typer) -> None:
    app.command("init")(init_command)


def init_command(
    *,
    secrets: Annotated[
        Path | None,
        typer.Option(
            "--secrets",
            metavar="FOLDER",
            help="Only make installation-secret, keys.json and operator-key there; no engine is asked.",
        ),
    ] = None,
) -> None:
    """Make topics, indices and the tenants of the vaults where they are missing; what is there stays.

    For the start of an installation on engines that exist, and of each new version; twice does no harm.
    """
    from hopline.local.bootstrap import ensure_topics_and_indices, vault_tenants
    from hopline.settings import load_settings
    from streams.logs import quiet_logging

    settings = load_settings()
    quiet_logging()
    if secrets is not None:
        for path in _make_secrets(settings, secrets):
            typer.echo(path)
        return
    asyncio.run(ensure_topics_and_indices(settings, vault_tenants(settings)))
    typer.echo(f"topics, indices and tenants of {settings.prefix} are there")


def _make_secrets(settings: Settings, folder: Path) -> list[Path]:
    """Those that are there stay. Only the owner may read them."""
    from hopline.local.bootstrap import ensure_operator_key
    from hopline.local_key import operator_key_file
    from search_api.identity.secret import SECRET_FILE, InstallationSecret

    folder = folder.expanduser().absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    api = settings.api.model_copy(update={"keys_file": folder / "keys.json"})
    local = settings.local.model_copy(update={"data_dir": folder})
    there = settings.model_copy(update={"api": api, "local": local})
    InstallationSecret.ensure(folder / SECRET_FILE)
    ensure_operator_key(there)
    return [folder / SECRET_FILE, there.keys_file, operator_key_file(folder)]
