"""`hopline agent ingest|embed|extract|link`: one agent as a process, until it is stopped. `hopline extract`: again."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hopline.settings import Settings
    from indexers.domain.identity import EntityNamespace
    from indexers.extracted import Progress
    from streams.agents.config import AgentConfig
    from streams.settings import AgentSettings

#: Between two looks of `hopline extract --wait`.
_LOOK_SECONDS = 1.0
#: Longest time in which the agents may stand still: a page of long documents takes minutes.
_PATIENCE_SECONDS = 300.0
agents = typer.Typer(help="Run one agent of the pipeline.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(agents, name="agent")
    app.command()(extract)


def agent_config(settings: Settings, agent: AgentSettings) -> AgentConfig:
    from streams.agents.config import AgentConfig

    return AgentConfig(
        prefix=settings.prefix,
        roots=settings.vaults,
        kafka=settings.kafka,
        kafka_servers=settings.kafka_servers,
        opensearch=settings.opensearch,
        opensearch_url=settings.opensearch_url,
        embedder=settings.embedder,
        extractor=settings.extractor,
        indexing=settings.indexing,
        memories=settings.memory_tree,
        agent=agent,
        tracing=settings.tracing,
    )


def _run(
    run: Callable[[AgentConfig], Coroutine[Any, Any, None]], settings: Settings, agent: AgentSettings
) -> None:
    # Before there are threads: the system keeps a niceness for each of them, and new ones inherit it.
    os.nice(agent.niceness)
    asyncio.run(run(agent_config(settings, agent)))


@agents.command()
def ingest() -> None:
    """File changes and memory writes into documents and links."""
    from streams.agents import ingest as agent

    settings = _logging_settings()
    _run(agent.run, settings, settings.ingest)


@agents.command()
def embed(
    *,
    reindex: Annotated[
        bool,
        typer.Option(
            "--reindex", help="The second group, of an open `hopline reindex`; ends with it, or at once."
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="With --reindex, where none is open: wait for the next one (for Kubernetes)."
        ),
    ] = False,
) -> None:
    """Chunks of documents into vectors."""
    from streams.agents import embed as agent

    if wait and not reindex:
        raise typer.BadParameter("--wait goes with --reindex", param_hint="--wait")
    settings = _logging_settings()
    _run(partial(agent.run, second=reindex, wait=wait), settings, settings.embed)


@agents.command("extract")
def extract_agent() -> None:
    """Texts of documents into mentions of people, services, incidents and the like."""
    from streams.agents import extract as agent

    settings = _logging_settings()
    _run(agent.run, settings, settings.extract)


@agents.command()
def link() -> None:
    """Mentions into names, entities and the edges between."""
    from streams.agents import link as agent

    settings = _logging_settings()
    _run(agent.run, settings, settings.link)


def extract(
    *,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            metavar="NS",
            help="shared, team:<team> or agent:<agent>; may be given again. Default: those of the vaults.",
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Tenant of the namespaces; default: those of the vaults.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Also documents whose entities are up to date.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it is done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Extract the entities of a namespace's documents again, in the background.

    For a changed model (HOPLINE_EXTRACTOR__MODEL) or a restored index. Changed labels ask for it by themselves.
    Without --all: only documents that were extracted with other labels or another model, or never.
    """
    from hopline.settings import load_settings
    from streams.logs import quiet_logging

    settings = load_settings()
    quiet_logging()
    chosen = chosen_namespaces(settings, namespace or (), tenant)
    found = asyncio.run(_ask(settings, chosen, whole=whole, wait=wait))
    if as_json:
        typer.echo(json.dumps([_as_json(ns, progress) for ns, progress in found.items()], ensure_ascii=False))
        return
    for ns, progress in found.items():
        said = "of the documents are up to date" if wait else "were up to date; the rest is under way"
        typer.echo(f"{ns.tenant_id}/{ns.owner}: {progress.done} of {progress.total} {said}")


def chosen_namespaces(
    settings: Settings, owners: list[str] | tuple[()], tenant: str | None
) -> list[EntityNamespace]:
    """Of the vaults, or those named; WrongUsage for a name that is none, ConfigurationError where nothing is left."""
    from indexers.domain.identity import EntityNamespace, TenantId
    from indexers.errors import ConfigurationError, WrongUsage

    of_roots = [EntityNamespace.of(root.namespace) for root in settings.vaults]
    tenants = [TenantId(tenant)] if tenant else list(dict.fromkeys(ns.tenant_id for ns in of_roots))
    if owners:
        try:
            chosen = [EntityNamespace(tenant_id=t, owner=owner) for t in tenants for owner in owners]
        except ValueError as exc:
            raise WrongUsage(str(exc)) from exc
    else:
        chosen = [ns for ns in of_roots if ns.tenant_id in tenants]
    if not chosen:
        msg = "no vault is set (HOPLINE_VAULTS): name --tenant and --namespace"
        raise ConfigurationError(msg)
    return list(dict.fromkeys(chosen))


async def _ask(
    settings: Settings, namespaces: list[EntityNamespace], *, whole: bool, wait: bool
) -> dict[EntityNamespace, Progress]:
    """Progress before anything was done, or with `wait` at the end."""
    from indexers.extracted import extraction_progress
    from indexers.extractors.factory import identify_extractor
    from indexers.opensearch.retry import RetryPolicy
    from streams.extract_requests import request_extraction
    from streams.producer import EventProducer

    config = agent_config(settings, settings.extract)
    model_id = await asyncio.to_thread(identify_extractor, config.extractor)
    gate = config.gate(RetryPolicy(attempts=3))
    try:
        found = {ns: await extraction_progress(gate, ns, model_id) for ns in namespaces}
        async with EventProducer(config.kafka, config.kafka_servers) as producer:
            for ns in namespaces:
                await request_extraction(producer, config.topics, ns, reason="asked_by_command", whole=whole)
        if wait:
            await _wait(config)
            found = {ns: await extraction_progress(gate, ns, model_id) for ns in namespaces}
        return found
    finally:
        await gate.close()


async def _wait(config: AgentConfig) -> None:
    """Until the extract agents have no request left. A page ends by asking for the next, so there is no gap."""
    from indexers.errors import HoplineError
    from streams.lag import lag

    topics = config.topics
    asked = (config.kafka, config.kafka_servers, topics.group("extract"), (topics.extract_requests,))
    moved_at, seen = time.monotonic(), [-1]
    while (parts := await lag(*asked)) and sum(part.lag for part in parts):
        if (now := [part.committed or 0 for part in parts]) != seen:
            moved_at, seen = time.monotonic(), now
        if time.monotonic() - moved_at > _PATIENCE_SECONDS:
            raise HoplineError(
                f"nothing was extracted for {_PATIENCE_SECONDS:.0f} s: is the agent running? (`hopline status`)"
            )
        await asyncio.sleep(_LOOK_SECONDS)


def _as_json(namespace: EntityNamespace, progress: Progress) -> dict[str, Any]:
    return {
        "tenant": namespace.tenant_id,
        "namespace": namespace.owner,
        "documents": progress.total,
        "up_to_date": progress.done,
    }


def _logging_settings() -> Settings:
    from hopline.settings import load_settings
    from streams.logs import configure_logging

    settings = load_settings()
    configure_logging(settings.log_level)
    return settings
