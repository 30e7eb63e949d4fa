"""Writes the generated pages of docs/reference from the code: settings, metrics, commands, routes, MCP tools.

python -m tools.reference           write
python -m tools.reference --check   exit 1 when a page differs from the code (part of the tests)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from prometheus_client import CollectorRegistry
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

PAGES = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by tools/reference.py from the code; don't edit. -->\n"


def settings_page() -> str:
    from hopline.settings import Settings

    lines = [
        "# Settings\n\n" + NOTE,
        "Read once at start: environment first, then the TOML file named by `HOPLINE_CONFIG` (else `hopline.toml` in",
        "the user's configuration folder), then the defaults. `hopline settings` shows the values in force. A misspelt",
        "name is an error.\n",
        "| environment | default | meaning |\n| --- | --- | --- |",
    ]
    lines += [f"| `{name}` | {default} | {text} |" for name, default, text in fields(Settings, "HOPLINE_")]
    lines += [
        "\n`HOPLINE_VAULTS` is JSON: a list of objects with these keys (in TOML: `[[vaults]]` tables).\n",
        "| key | default | meaning |\n| --- | --- | --- |",
    ]
    from indexers.settings import VaultRoot

    lines += [f"| `{name.lower()}` | {default} | {text} |" for name, default, text in fields(VaultRoot, "")]
    lines += ["\n## Read from the environment only\n", "| variable | meaning |\n| --- | --- |"]
    lines += [
        "| `HOPLINE_CONFIG` | The settings file. |",
        "| `HOPLINE_JAVA_HOME` | The JDK (21 or newer) for the local engines; before `JAVA_HOME`. |",
        "| `HOPLINE_API_URL` | Where the client finds the query service; else the settings' host and port. |",
        "| `HOPLINE_API_KEY` | The client's key; else the local key that `hopline up` stored. |",
    ]
    return "\n".join(lines) + "\n"


def fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from section(info, kind, f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}", default_of(info), info.description or ""


def section(info: FieldInfo, kind: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    own = info.default if isinstance(info.default, BaseModel) else None
    for name, field in kind.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from section(field, inner, f"{prefix}{name.upper()}__")
            continue
        value = default_of(field)
        if own is not None and name in own.model_fields_set:
            value = f"`{getattr(own, name)}`"
        yield f"{prefix}{name.upper()}", value, field.description or ""


def default_of(info: FieldInfo) -> str:
    if info.default_factory is not None:
        return "by system" if "dir" in str(info.default_factory) else "empty"
    if info.default is PydanticUndefined:
        return "required"
    if info.default is None or info.default in ((), ""):
        return "empty"
    if isinstance(info.default, tuple):
        return f"`{json.dumps(info.default)}`"
    return f"`{info.default}`"


def metrics_page() -> str:
    lines = [
        "# Metrics\n\n" + NOTE,
        "Every process serves them on `/metrics`. No metric has a tenant label: tenants are in the logs.\n",
    ]
    for title, registry in registries().items():
        lines += [f"## {title}\n", "| metric | type | labels | meaning |\n| --- | --- | --- | --- |"]
        for name, kind, labels, text in metric_rows(registry):
            named = ", ".join(f"`{label}`" for label in labels) or "–"
            lines.append(f"| `{name}` | {kind} | {named} | {text} |")
        lines.append("")
    return "\n".join(lines)


def registries() -> dict[str, CollectorRegistry]:
    from search_api.metrics import ApiMetrics
    from streams.metrics import StreamMetrics
    from streams.verifier.metrics import VerifyMetrics
    from streams.watcher.metrics import WatcherMetrics

    found = {title: CollectorRegistry() for title in ("Agents", "Watcher", "Verifier", "Query service")}
    StreamMetrics(found["Agents"], agent="ingest")
    WatcherMetrics(found["Watcher"])
    VerifyMetrics(found["Verifier"])
    ApiMetrics(found["Query service"])
    return found


def metric_rows(registry: CollectorRegistry) -> list[tuple[str, str, tuple[str, ...], str]]:
    """Name, type, labels and help text of each metric, by name."""
    rows = []
    collectors: list[Any] = list(registry._collector_to_names)  # noqa: SLF001 - the library offers no other way
    for collector in collectors:
        labels = getattr(collector, "_labelnames", ())
        for family in collector.describe():
            name = family.name + ("_total" if family.type == "counter" else "")
            rows.append((name, family.type, tuple(labels), family.documentation))
    return sorted(rows)


def commands_page() -> str:
    lines = [
        "# Commands\n\n" + NOTE,
        "Exit codes: 0 done; 1 failed, or something is wrong that was asked about; 2 wrong use or settings;",
        "3 not running (`hopline status`) or removals held (`hopline rescan`); 130 interrupted.\n",
        "Default: `–` stands for not given, of a flag for off.\n",
    ]
    for path, command in commands():
        lines += [f"## `{' '.join(path)}`\n", (command.help or "").split("\f")[0].strip() + "\n"]
        rows = [row(parameter) for parameter in command.params if getattr(parameter, "name", "") != "help"]
        if rows:
            lines += ["| argument or option | default | meaning |\n| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words; groups are left out."""
    from hopline.cli.main import build_app

    root = typer.main.get_command(build_app())
    for path, command in walk(root, ("hopline",)):
        if not hasattr(command, "commands"):
            yield path, command


def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below this one; typer brings a click of its own, whose types have no public name."""
    yield path, command
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from walk(child, (*path, name))


def row(parameter: Any) -> str:
    names = (
        ", ".join(f"`{x}`" for x in (*parameter.opts, *parameter.secondary_opts))
        if parameter.param_type_name == "option"
        else f"`{parameter.name}`"
    )
    text = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
    return f"| {names} | {value_without(parameter)} | {text} |"


def value_without(parameter: Any) -> str:
    """What holds where the argument or option is left out."""
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.default is False:
        return "–"
    return "on" if parameter.default is True else f"`{parameter.default}`"


def routes_page() -> str:
    from search_api.app import openapi_document
    from search_api.web.files import BELOW
    from search_api.web.page import CONFIG_PATH

    document = openapi_document()
    lines = [
        "# Routes\n\n" + NOTE,
        "`GET /openapi.json` gives the whole description (OpenAPI 3.1). Errors are `application/problem+json`",
        "(RFC 9457); each answer carries `X-Request-Id`. Every route but health, readiness and metrics",
        "needs `Authorization: Bearer KEY`.\n",
        f"[The page](../how-to/look-in.md) is at `/`, its files below `{BELOW}`: GET and HEAD, without a key.",
        f"`{CONFIG_PATH}` is what it must know before a login: `version`, and `login` (`authority`, `client_id`,",
        "`scope` of the issuer of tokens; null where there is none).\n",
    ]
    for path, methods in sorted(document["paths"].items()):
        for method, route in sorted(methods.items()):
            lines += [
                f"## `{method.upper()} {path}`\n",
                route.get("description") or route.get("summary", ""),
                "",
            ]
            parameters = route.get("parameters", [])
            if parameters:
                lines += ["| parameter | in | meaning |\n| --- | --- | --- |"]
                lines += [
                    f"| `{p['name']}` | {p['in']} | {p.get('description', '')} |" for p in parameters
                ] + [""]
            lines += body_rows(document, route)
            lines += ["| status | meaning |\n| --- | --- |"]
            lines += [
                f"| {status} | {answer['description']} |"
                for status, answer in sorted(route["responses"].items())
            ] + [""]
    return "\n".join(lines)


def body_rows(document: dict[str, Any], route: dict[str, Any]) -> list[str]:
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
    if not name:
        return []
    schema = document["components"]["schemas"][name]
    lines = ["| body field | default | meaning |\n| --- | --- | --- |"]
    for field, info in schema["properties"].items():
        default = f"`{json.dumps(info['default'])}`" if "default" in info else "–"
        lines.append(f"| `{field}` | {default} | {info.get('description', '')} |")
    return [*lines, ""]


def mcp_page() -> str:
    lines = [
        "# MCP tools\n\n" + NOTE,
        "`hopline mcp` serves them on standard input and output, the query service at `/mcp`",
        "([how to connect an agent](../how-to/connect-agents.md)). Each asks the [routes](routes.md) with the",
        "caller's key.\n",
    ]
    tools, templates = mcp_tools()
    for tool in tools:
        hints = tool.annotations.model_dump(exclude_none=True, by_alias=True)
        lines += [
            f"## `{tool.name}`\n",
            f"{tool.description}\n",
            ", ".join(f"`{name}: {json.dumps(value)}`" for name, value in hints.items()) + "\n",
            "| argument | default | meaning |\n| --- | --- | --- |",
            *schema_rows(tool.input_schema),
            "",
            "| answer | meaning |\n| --- | --- |",
            *answer_rows(tool.output_schema),
            "",
        ]
    lines += ["## Resources\n", "| address | what |\n| --- | --- |"]
    lines += [f"| `{t.uri_template}` | {t.description} (`{t.mime_type}`) |" for t in templates]
    return "\n".join(lines) + "\n"


def mcp_tools() -> tuple[list[Any], list[Any]]:
    """Tools and templates of resources, as clients are told them."""
    import asyncio

    import httpx2

    from search_api.mcp.rest import Rest
    from search_api.mcp.server import build_server

    async def told() -> tuple[list[Any], list[Any]]:
        async with httpx2.AsyncClient() as http:
            server = build_server(Rest(http, lambda _: {}), version="")
            return await server.list_tools(), await server.list_resource_templates()

    return asyncio.run(told())


def schema_rows(schema: dict[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    return [
        f"| `{name}` | {_default(info, required=name in required)} | {_cell(info.get('description', ''))} |"
        for name, info in schema["properties"].items()
    ]


def answer_rows(schema: dict[str, Any]) -> list[str]:
    """Fields of the answer, and of the objects in its lists."""
    rows: list[str] = []

    def walk_fields(part: dict[str, Any], prefix: str) -> None:
        for name, info in part.get("properties", {}).items():
            rows.append(f"| `{prefix}{name}` | {_cell(info.get('description', ''))} |")
            inner = info.get("items", info)
            if (ref := inner.get("$ref")) is not None:
                mark = "[]" if "items" in info else ""
                walk_fields(schema["$defs"][ref.rsplit("/", 1)[-1]], f"{prefix}{name}{mark}.")

    walk_fields(schema, "")
    return rows


def _default(info: dict[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    return "–" if info.get("default") is None else f"`{json.dumps(info['default'])}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


PAGE_WRITERS: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "commands.md": commands_page,
    "routes.md": routes_page,
    "mcp.md": mcp_page,
}


def stale_pages() -> list[str]:
    """Names of the pages that differ from the code."""
    return [
        name
        for name, write in PAGE_WRITERS.items()
        if not (PAGES / name).is_file() or (PAGES / name).read_text() != write()
    ]


def main() -> int:
    if "--check" in sys.argv:
        stale = stale_pages()
        for name in stale:
            print(
                f"docs/reference/{name} differs from the code: run python -m tools.reference", file=sys.stderr
            )
        return 1 if stale else 0
    for name, write in PAGE_WRITERS.items():
        (PAGES / name).write_text(write())
    return 0


if __name__ == "__main__":
    sys.exit(main())
