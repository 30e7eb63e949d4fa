"""`hopline verify`, `hopline rebuild`: is the index what the vault says, and make it so."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopline.cli.terminal import visible

if TYPE_CHECKING:
    from hopline.settings import Settings
    from indexers.settings import VaultRoot
    from indexers.verify.report import VerifyReport

EXIT_FINDINGS = 1
#: Findings of one kind that are shown.
EXAMPLES_MAX = 10

RootOption = Annotated[str | None, typer.Option("--root", help="Name of one vault root; default: all.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def register(app: typer.Typer) -> None:
    app.command()(verify)
    app.command()(rebuild)


def verify(
    *,
    root: RootOption = None,
    digest: Annotated[
        bool, typer.Option("--digest", help="Also one hash over all rows of each root's tenant.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            "--every",
            metavar="SECONDS",
            min=1,
            help="Stay, compare every so often, and show what stands on /metrics (HOPLINE_VERIFIER__HTTP_PORT).",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare vaults and index; changes nothing. Exit 1 on any difference.

    With --every it stays until it is stopped. It says what it finds in its log and on /metrics, with no exit code.
    """
    from hopline.settings import load_settings
    from indexers.errors import WrongUsage
    from indexers.vault.roots import chosen_roots
    from streams.logs import quiet_logging

    settings = load_settings()
    if every is not None:
        if digest or as_json:
            raise WrongUsage("--every shows what it finds on /metrics: leave --digest and --json out")
        _stay(settings, root, every)
        return
    quiet_logging()
    reports, digests = asyncio.run(_verify(settings, chosen_roots(settings.all_vaults, root), digest=digest))
    held = _held_removals(settings)
    if as_json:
        found = [_as_json(r) | {"held_removals": held.get(r.root)} for r in reports]
        document = {"clean": all(r.clean for r in reports), "roots": found}
        typer.echo(json.dumps(document | ({"digests": digests} if digest else {}), ensure_ascii=False))
    else:
        for report in reports:
            show_report(report, held.get(report.root))
        for tenant, value in digests.items():
            typer.echo(f"content of tenant {tenant}: {value}")
    raise typer.Exit(0 if all(report.clean for report in reports) else EXIT_FINDINGS)


def rebuild(
    *,
    root: RootOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Drop the index and restore it from the vaults; the agents must be running. Then verify.

    With --root, only that root's rows are dropped and restored.
    """
    from hopline.settings import load_settings
    from indexers.vault.roots import chosen_roots
    from streams.logs import quiet_logging

    settings = load_settings()
    quiet_logging()
    roots = chosen_roots(settings.all_vaults, root)
    what = f"the rows of {root}" if root else f"all indices of prefix {settings.prefix!r}, of every tenant,"
    if not yes and not typer.confirm(f"Delete {what} and restore from the vaults?", err=True):
        # A terminal has echoed the reader's line end, a pipe hasn't.
        typer.echo("" if sys.stdin.isatty() else "\n", err=True, nl=False)
        typer.echo("Nothing was deleted.", err=True)
        raise typer.Exit(1)
    sent, reports = asyncio.run(_rebuild(settings, roots, everything=root is None))
    clean = all(report.clean for report in reports)
    if as_json:
        document = {"sent": sent, "clean": clean, "roots": [_as_json(report) for report in reports]}
        typer.echo(json.dumps(document, ensure_ascii=False))
    else:
        for report in reports:
            show_report(report)
    raise typer.Exit(0 if clean else EXIT_FINDINGS)


def _stay(settings: Settings, root: str | None, every_seconds: float) -> None:
    from hopline.cli.agents import agent_config
    from indexers.vault.roots import chosen_roots
    from streams.logs import configure_logging
    from streams.verifier.service import VerifierConfig, run

    configure_logging(settings.log_level)
    config = VerifierConfig(
        agent=agent_config(settings, settings.ingest),
        settings=settings.verifier,
        # No root at all is nothing to compare: the memory tree comes with the first memory.
        roots=lambda: settings.all_vaults if root is None else chosen_roots(settings.all_vaults, root),
        every_seconds=every_seconds,
    )
    asyncio.run(run(config))


async def _verify(
    settings: Settings, roots: tuple[VaultRoot, ...], *, digest: bool
) -> tuple[list[VerifyReport], dict[str, str]]:
    from hopline.cli.agents import agent_config
    from indexers.domain.identity import Principal, TenantId
    from indexers.opensearch.retry import RetryPolicy
    from indexers.verify.digest import content_digest
    from streams.rebuild import COMMAND_ATTEMPTS, verify_roots

    config = agent_config(settings, settings.ingest)
    gate = config.gate(RetryPolicy(attempts=COMMAND_ATTEMPTS))
    try:
        reports = await verify_roots(config, gate, roots, say=_say)
        digests: dict[str, str] = {}
        for tenant in sorted({root.tenant for root in roots}) if digest else ():
            found = await content_digest(gate, Principal.pipeline(TenantId(tenant)))
            digests[tenant] = found.value
    finally:
        await gate.close()
    return reports, digests


async def _rebuild(
    settings: Settings, roots: tuple[VaultRoot, ...], *, everything: bool
) -> tuple[dict[str, int], list[VerifyReport]]:
    from hopline.cli.agents import agent_config
    from streams.rebuild import open_rebuilder, verify_roots

    config = agent_config(settings, settings.ingest)
    async with open_rebuilder(config, _say, settings.watcher) as rebuilder:
        sent = await rebuilder.run(roots, everything=everything)
        return sent, await verify_roots(config, rebuilder.gate, roots, say=_say)


def _say(line: str) -> None:
    """Progress, apart from the result."""
    if sys.stderr.isatty():
        typer.echo(line, err=True)


def show_report(report: VerifyReport, held: dict[str, Any] | None = None) -> None:
    typer.echo(visible(_as_text(report, held)))


def _as_text(report: VerifyReport, held: dict[str, Any] | None = None) -> str:
    lines = [
        f"{report.root}: {report.files} files, {report.documents} documents, {report.chunks} chunks, "
        f"{report.links} links ({report.dangling} dangling), {report.mentions} mentions, {report.names} names, "
        f"{report.tombstones} tombstones: "
        + ("clean" if report.clean else f"{sum(report.counts.values())} differences")
    ]
    lines += [f"  {count} x {kind}" for kind, count in sorted(report.counts.items())]
    for kind, count in sorted(report.counts.items()):
        shown = [finding for finding in report.findings if finding.kind == kind][:EXAMPLES_MAX]
        lines.append(f"  {kind}:")
        lines += [f"    {finding.where}  ({finding.detail})" for finding in shown]
        if count > len(shown):
            lines.append(f"    and {count - len(shown)} more (--json)")
    if held:
        lines.append(
            f"  {held['count']} removals are held by the watcher; if they are right: {held['confirm']}"
        )
    if not report.clean:
        lines.append(
            "  What to do: wait until `hopline status` shows no lag, then `hopline rescan`; "
            "for names and mentions `hopline extract --all`; if a finding stays, `hopline rebuild`."
        )
    return "\n".join(lines)


def _held_removals(settings: Settings) -> dict[str, dict[str, Any]]:
    """By root, as the watcher last wrote it down."""
    from hopline.cli.watch import status_folder
    from streams.watcher.status import read_statuses

    statuses = read_statuses(status_folder(settings))
    return {status["root"]: status["held_removals"] for status in statuses if status.get("held_removals")}


def _as_json(report: VerifyReport) -> dict[str, Any]:
    return {
        "root": report.root,
        "clean": report.clean,
        "files": report.files,
        "documents": report.documents,
        "chunks": report.chunks,
        "links": report.links,
        "dangling": report.dangling,
        "mentions": report.mentions,
        "names": report.names,
        "relations": report.relations,
        "tombstones": report.tombstones,
        "counts": dict(report.counts),
        "findings": [{"kind": f.kind, "where": f.where, "detail": f.detail} for f in report.findings],
    }
