"""`hopline agent ingest|embed`: one agent as a process, until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hopline.settings import Settings
    from streams.agents.config import AgentConfig
    from streams.settings import AgentSettings

agents = typer.Typer(help="Run one agent of the pipeline.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(agents, name="agent")


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
        agent=agent,
    )


@agents.command()
def ingest() -> None:
    """File changes and memory writes into documents and links."""
    import asyncio

    from hopline.settings import load_settings
    from streams.agents import ingest as agent
    from streams.logs import configure_logging

    settings = load_settings()
    configure_logging(settings.log_level)
    asyncio.run(agent.run(agent_config(settings, settings.ingest)))


@agents.command()
def embed() -> None:
    """Chunks of documents into vectors."""
    import asyncio

    from hopline.settings import load_settings
    from streams.agents import embed as agent
    from streams.logs import configure_logging

    settings = load_settings()
    configure_logging(settings.log_level)
    asyncio.run(agent.run(agent_config(settings, settings.embed)))
