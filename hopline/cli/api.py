"""`hopline api`: the query service in the foreground."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command("api")(api_command)


def api_command() -> None:
    """Run the query service until SIGTERM. `hopline up` starts it too."""
    from hopline.local_key import installation_secret
    from hopline.settings import load_settings
    from search_api.serve import serve
    from search_api.wiring import ServeSettings
    from streams.logs import configure_logging

    settings = load_settings()
    configure_logging(settings.log_level)
    serve(
        ServeSettings(
            prefix=settings.prefix,
            opensearch_url=settings.opensearch_url,
            opensearch=settings.opensearch,
            kafka_servers=settings.kafka_servers,
            kafka=settings.kafka,
            embedder=settings.embedder,
            extractor=settings.extractor,
            indexing=settings.indexing,
            vaults=settings.vaults,
            api=settings.api,
            search=settings.search,
            context=settings.context,
            limits=settings.limits,
            oidc=settings.oidc,
            secret=installation_secret(settings),
            mcp=settings.mcp,
            web=settings.web,
            keys_file=settings.keys_file,
            memories=settings.memory_tree,
            tracing=settings.tracing,
        )
    )
