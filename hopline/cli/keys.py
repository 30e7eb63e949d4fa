"""`hopline keys`: the local user's key. Managing more of them comes with the tenants' own commands."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    keys = typer.Typer(help="API keys.", no_args_is_help=True)
    keys.callback()(_group)
    keys.command("show")(show)
    app.add_typer(keys, name="keys")


def show() -> None:
    """Print the key that `hopline up` made for the local user, for use in scripts."""
    from hopline.local_key import local_key_file, read_local_key
    from hopline.settings import load_settings
    from indexers.errors import ConfigurationError

    data_dir = load_settings().local.data_dir
    key = read_local_key(data_dir)
    if key is None:
        msg = f"{local_key_file(data_dir)} is not there: `hopline up` makes the local key"
        raise ConfigurationError(msg)
    typer.echo(key)


def _group() -> None:
    """Keep `show` a command of its own while it is the only one."""
