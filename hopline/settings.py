"""All settings: built once in `main()`, passed down, frozen. Order: environment, the file, defaults.

Environment: `HOPLINE_` and `__` between levels (`HOPLINE_OPENSEARCH__URL`). File: TOML named by
`HOPLINE_CONFIG`, else `hopline.toml` in the user's configuration folder. The vaults that were named to
`hopline up --vault` are added.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from hopline.local.vaults import join_vaults, read_remembered
from indexers.errors import ConfigurationError
from indexers.settings import (
    EmbedderSettings,
    ExtractorSettings,
    IndexingSettings,
    MemoriesSettings,
    OpenSearchSettings,
    Section,
    VaultRoot,
)
from search_api.context.settings import ContextSettings
from search_api.identity.settings import OidcSettings
from search_api.mcp.settings import McpSettings
from search_api.settings import ApiSettings, LimitsSettings, SearchSettings
from search_api.web.settings import WebSettings
from streams.settings import AgentSettings, KafkaSettings, TracingSettings, VerifierSettings, WatcherSettings

ENV_PREFIX = "HOPLINE_"
#: Read by the process itself, before or beside the settings.
ENV_EXTRA = frozenset({"HOPLINE_CONFIG", "HOPLINE_JAVA_HOME", "HOPLINE_API_KEY", "HOPLINE_API_URL"})


def default_data_dir() -> Path:
    """Root's home can't be read by OpenSearch's unprivileged user, so root's data live under /var/lib."""
    return Path("/var/lib/hopline") if os.geteuid() == 0 else Path(platformdirs.user_data_dir("hopline"))


def default_cache_dir() -> Path:
    return Path("/var/cache/hopline") if os.geteuid() == 0 else Path(platformdirs.user_cache_dir("hopline"))


class LocalSettings(Section):
    """The engines and processes that `hopline up` starts on this machine."""

    data_dir: Path = Field(
        default_factory=default_data_dir, description="Data, logs and state of the local stack."
    )
    cache_dir: Path = Field(default_factory=default_cache_dir, description="Downloaded engines.")
    kafka_port: int = Field(
        8471, ge=1, le=65_535, description="Port of the local broker (the next one is its controller)."
    )
    opensearch_port: int = Field(
        8473, ge=1, le=65_535, description="Port of the local node (the next one is its transport)."
    )
    kafka_heap_mb: int = Field(512, ge=128, description="Largest heap of the broker, MiB.")
    opensearch_heap_mb: int = Field(768, ge=256, description="Heap of the node, MiB.")
    opensearch_user: str = Field(
        "nobody", description="User that runs OpenSearch when `hopline up` runs as root."
    )
    short_lived: bool = Field(
        default=False, description="Engines tuned for start-up time (tests): half the speed."
    )
    start_timeout_seconds: float = Field(120.0, gt=0, description="Longest wait for one process to be ready.")

    @field_validator("data_dir", "cache_dir")
    @classmethod
    def _absolute(cls, folder: Path) -> Path:
        """Processes of the stack work in other folders than the caller."""
        return folder.expanduser().absolute()


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        nested_model_default_partial_update=True,
    )

    prefix: str = Field(
        "hopline",
        pattern=r"^[a-z][a-z0-9-]{0,40}$",
        description="First part of topic, group and index names.",
    )
    log_level: str = Field(
        "INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="Least severe log line written."
    )
    vaults: tuple[VaultRoot, ...] = Field((), description="Vault roots, each with its namespace.")
    kafka: KafkaSettings = KafkaSettings()
    opensearch: OpenSearchSettings = OpenSearchSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    extractor: ExtractorSettings = ExtractorSettings()
    indexing: IndexingSettings = IndexingSettings()
    memories: MemoriesSettings = MemoriesSettings()
    ingest: AgentSettings = AgentSettings()
    embed: AgentSettings = AgentSettings(batch_records=64, niceness=5)
    extract: AgentSettings = AgentSettings(batch_records=32, niceness=10)
    link: AgentSettings = AgentSettings(batch_records=1_000, batch_seconds=0.5)
    watcher: WatcherSettings = WatcherSettings()
    verifier: VerifierSettings = VerifierSettings()
    tracing: TracingSettings = TracingSettings()
    api: ApiSettings = ApiSettings()
    limits: LimitsSettings = LimitsSettings()
    oidc: OidcSettings = OidcSettings()
    search: SearchSettings = SearchSettings()
    context: ContextSettings = ContextSettings()
    mcp: McpSettings = McpSettings()
    web: WebSettings = WebSettings()
    local: LocalSettings = LocalSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        _ = dotenv_settings, file_secret_settings
        return (
            init_settings,
            env_settings,
            TomlConfigSettingsSource(settings_cls, toml_file=config_file()),
        )

    @property
    def kafka_servers(self) -> str:
        return self.kafka.bootstrap_servers or f"127.0.0.1:{self.local.kafka_port}"

    @property
    def opensearch_url(self) -> str:
        return self.opensearch.url or f"http://127.0.0.1:{self.local.opensearch_port}"

    @property
    def keys_file(self) -> Path:
        return self.api.keys_file or self.local.data_dir / "keys.json"

    @property
    def memory_tree(self) -> Path | None:
        """None: memories are taken for vault roots alone."""
        if not self.memories.enabled:
            return None
        return self.memories.folder or self.local.data_dir / "memories"

    @property
    def all_vaults(self) -> tuple[VaultRoot, ...]:
        """The roots, and the namespaces of the memory tree as it is now. Blocking."""
        from indexers.vault.tree import VaultTree

        return VaultTree(self.vaults, self.memory_tree).all_roots


def config_file() -> Path:
    named = os.environ.get("HOPLINE_CONFIG")
    return Path(named) if named else Path(platformdirs.user_config_dir("hopline")) / "hopline.toml"


def load_settings() -> Settings:
    """Raises ConfigurationError naming each wrong setting; a misspelt HOPLINE_ variable is an error too."""
    variables = setting_variables(Settings, ENV_PREFIX)
    for name in os.environ:
        if name.startswith(ENV_PREFIX) and name not in ENV_EXTRA:
            _require_variable(name, variables)
    path = config_file()
    if "HOPLINE_CONFIG" in os.environ and not path.is_file():
        msg = f"HOPLINE_CONFIG names {path}, which is no file"
        raise ConfigurationError(msg)
    try:
        settings = Settings()
    except ValidationError as exc:
        lines = [f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in exc.errors()]
        raise ConfigurationError("settings refused: " + "; ".join(lines)) from exc
    except SettingsError as exc:
        raise ConfigurationError(_no_json(variables) or f"settings refused: {exc}") from exc
    except tomllib.TOMLDecodeError as exc:
        msg = f"{path} is no TOML: {exc}"
        raise ConfigurationError(msg) from exc
    _require_url(settings.opensearch.url)
    remembered = join_vaults(settings.vaults, read_remembered(settings.local.data_dir))
    return settings.model_copy(update={"vaults": remembered})


def setting_variables(section: type[BaseModel], prefix: str) -> dict[str, Any]:
    """Every variable that may be set, sections included, and the type of its value."""
    found: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        variable, kind = f"{prefix}{name.upper()}", field.annotation
        found[variable] = kind
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= setting_variables(kind, f"{variable}__")
    return found


def _require_variable(name: str, variables: Mapping[str, Any]) -> None:
    upper = name.upper()
    mappings = tuple(f"{known}__" for known, kind in variables.items() if get_origin(kind) is dict)
    if upper in variables or upper.startswith(mappings):
        return
    near = difflib.get_close_matches(upper, variables, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ConfigurationError(f"{name} is no setting; {hint}`hopline settings` lists all")


def _no_json(variables: Mapping[str, Any]) -> str | None:
    """Which variable holds text where lists and sections are written as JSON."""
    for name, value in os.environ.items():
        if not _is_json(variables.get(name.upper())):
            continue
        try:
            json.loads(value)
        except ValueError as exc:
            example = '[{"name": "notes", "path": "/home/me/notes"}]'
            like = f", such as {example}" if name.upper() == f"{ENV_PREFIX}VAULTS" else ""
            return f"{name} is no JSON ({exc}): its value is JSON{like}"
    return None


def _is_json(kind: Any) -> bool:
    return get_origin(kind) in (tuple, dict) or (isinstance(kind, type) and issubclass(kind, BaseModel))


def _require_url(url: str | None) -> None:
    if url is None:
        return
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise ConfigurationError(
            f"HOPLINE_OPENSEARCH__URL (opensearch.url) is {url!r}: that is no address like http://127.0.0.1:9200"
        )
