"""`hopline watch`, `hopline rescan`, `hopline write-file`: the vaults' side of the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopline.cli.terminal import visible
from indexers.errors import Away, HoplineError, WrongUsage

if TYPE_CHECKING:
    from hopline.settings import Settings
    from indexers.settings import VaultRoot
    from streams.watcher.service import WatcherConfig
    from streams.watcher.status import ScanReport

#: Nothing failed, but deletions wait for a person.
EXIT_HELD = 3
EXIT_ROOT_FAILED = 1

RootOption = Annotated[str | None, typer.Option("--root", help="Name of one vault root; default: all.")]


def register(app: typer.Typer) -> None:
    app.command()(watch)
    app.command()(rescan)
    app.command("write-file")(write_file)


def watcher_config(settings: Settings) -> WatcherConfig:
    from streams.watcher.service import WatcherConfig

    return WatcherConfig(
        prefix=settings.prefix,
        roots=settings.vaults,
        kafka=settings.kafka,
        kafka_servers=settings.kafka_servers,
        opensearch=settings.opensearch,
        opensearch_url=settings.opensearch_url,
        indexing=settings.indexing,
        memories=settings.memory_tree,
        watcher=settings.watcher,
        status_folder=status_folder(settings),
        tracing=settings.tracing,
    )


def status_folder(settings: Settings) -> Path:
    """Where each root's state is kept for `hopline status` (streams.watcher.status.read_statuses)."""
    return settings.local.data_dir / "watcher"


def watch() -> None:
    """Follow the vaults: a scan at the start, then every change, until stopped."""
    from hopline.settings import load_settings
    from streams.logs import configure_logging
    from streams.watcher import service

    settings = load_settings()
    configure_logging(settings.log_level)
    asyncio.run(service.run(watcher_config(settings)))


def rescan(
    *,
    confirm_removals: Annotated[
        bool, typer.Option("--confirm-removals", help="Delete what is gone, even much or all of it.")
    ] = False,
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False,
) -> None:
    """Compare vaults and index now. Exit 3: removals are held; 1: a root could not be read."""
    from hopline.settings import load_settings
    from streams.logs import quiet_logging
    from streams.watcher import service

    settings = load_settings()
    quiet_logging()
    results = asyncio.run(
        service.rescan(watcher_config(settings), root=root, confirm_removals=confirm_removals)
    )
    faults = [result for result in results.values() if isinstance(result, Away)]
    if faults and len(faults) == len(results):
        raise faults[0]
    if as_json:
        typer.echo(json.dumps({name: _as_json(result) for name, result in results.items()}))
    else:
        show_results(results)
    failed = any(isinstance(result, HoplineError) for result in results.values())
    held = any(not isinstance(result, HoplineError) and result.held for result in results.values())
    raise typer.Exit(EXIT_ROOT_FAILED if failed else EXIT_HELD if held else 0)


def write_file(
    path: Annotated[str, typer.Argument(help="Where, relative to the vault root; ends in .md.")],
    *,
    root: Annotated[
        str | None, typer.Option("--root", help="Vault to write to; needed where there are several.")
    ] = None,
) -> None:
    """Write standard input to PATH of a vault: readers see the old bytes or the new, never half."""
    from hopline.settings import load_settings
    from indexers.vault.roots import only_root

    settings = load_settings()
    chosen = only_root(watcher_config(settings).roots, root)
    typer.echo(visible(_write(chosen, path, sys.stdin.buffer.read())))


def _write(root: VaultRoot, path: str, content: bytes) -> str:
    from indexers.vault.local import LocalVaultFiles

    try:
        entry = LocalVaultFiles(root.path).write_atomic(path, content)
    except (ValueError, OSError) as exc:
        msg = f"{path} was not written to {root.name}: {exc}"
        raise (WrongUsage if isinstance(exc, ValueError) else HoplineError)(msg) from exc
    return f"{entry.path}: {entry.size} bytes, document {root.namespace.document(entry.path).doc_id}"


def show_results(results: Mapping[str, ScanReport | HoplineError]) -> None:
    for name, result in results.items():
        typer.echo(visible(_as_text(name, result)))


def _as_text(name: str, result: ScanReport | HoplineError) -> str:
    if isinstance(result, HoplineError):
        return f"{name}: not scanned, nothing deleted: {result}"
    looked = f"{result.files} files looked at in {result.seconds:.1f} s"
    counts = f"{result.upserted} sent (what is indexed already is skipped), {result.moved} of them moved"
    lines = [f"{name}: {looked}; {counts}; {result.deleted} deletions sent"]
    lines += [f"  left out: {problem.path} ({problem.reason})" for problem in result.problems]
    if result.held is not None:
        lines.append(
            f"  HELD: {len(result.held.paths)} of {result.held.known} documents have no file any more"
            f" ({result.held.reason}). Nothing was deleted for them. If that is right:"
            f" hopline rescan --confirm-removals --root {name}"
        )
    return "\n".join(lines)


def _as_json(result: ScanReport | HoplineError) -> dict[str, Any]:
    if isinstance(result, HoplineError):
        return {"error": str(result)}
    return {
        "files": result.files,
        "seconds": result.seconds,
        "upserted": result.upserted,
        "moved": result.moved,
        "deleted": result.deleted,
        "problems": [{"path": p.path, "reason": p.reason} for p in result.problems],
        "held": None if result.held is None else {"reason": result.held.reason, "paths": result.held.paths},
    }
